"""Calls of kernels that are kept for another system: a difference there is noticed."""

from pathlib import Path

import numpy as np
import pytest
from fastscore_kernels.inequality import _gini

from tests.jit.wine import PLACE, Recorder


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="Linux alone lists memory so")
def test_a_kept_call_has_all_that_the_kernel_reads_and_finds(monkeypatch):
    recorder, out = Recorder(), np.zeros(2)
    recorder.call(_gini, np.array([1.0, 3.0, 0.0, 4.0]), np.array([0, 2, 4]), 1e-12, out, 0, 2)
    (call,) = recorder.calls
    assert out.tolist() == [0.25, 0.5]
    assert not call.is_alike(bytes(call.memory))  # nothing is written yet
    ((place, _),) = call.written
    memory = bytearray(call.memory)
    memory[place - PLACE : place - PLACE + out.nbytes] = out.tobytes()
    assert call.is_alike(bytes(memory))
    memory[place - PLACE] ^= 1
    assert not call.is_alike(bytes(memory))

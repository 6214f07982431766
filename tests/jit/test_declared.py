"""Declarations of kernels: names, types and flags."""

import fastscore_kernels
import numpy as np
import pytest
from fastscore_jit.compiling import Kernel, writer
from fastscore_jit.declaring import parse

from fastscore.run.kernels import every_kernel

ALLOWED_FASTMATH = {"reassoc", "contract", "arcp", "afn", "nsz"}


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fastscore_kernels.nothing


def test_an_argument_of_another_type_is_refused():
    kernel = Kernel(lambda: None, "uint8[:], out(int64[:, :])", "", False)
    read, written = parse(kernel.parameters, {})
    words = []
    writer(read, "argument 1,")(np.zeros(3, np.uint8), words, [])
    assert len(words) == 1
    for kind, wrong, found in (
        (read, np.zeros(3, np.int8), "int8 of shape"),
        (read, np.zeros((3, 1), np.uint8), r"shape \(3, 1\)"),
        (read, np.zeros(6, np.uint8)[::2], "not C-contiguous"),
        (written, np.broadcast_to(np.int64(0), (1, 1)), "read-only"),
    ):
        with pytest.raises(TypeError, match=found):
            writer(kind, "argument 1,")(wrong, [], [])


def test_declared_types_can_be_read_and_no_flag_rules_out_nan():
    for kernel in every_kernel():
        names = kernel.function.__globals__
        count = kernel.function.__code__.co_argcount
        assert len(parse(kernel.parameters, names)) == count, kernel
        assert kernel.fastmath is False or kernel.fastmath <= ALLOWED_FASTMATH, kernel
        parse(kernel.returns, names)

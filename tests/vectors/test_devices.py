"""Devices: refusals, and the options given to a GPU's provider, which is faked."""

import dataclasses

import numpy as np
import onnxruntime
import pytest

from fastscore.errors import ModelError
from fastscore.run.signature import EmbedderIdentity
from fastscore.vectors.accuracy import list_accuracies, stated_accuracy
from fastscore.vectors.devices import CPU, CUDA, DEVICES
from fastscore.vectors.embedder import Embedder, cut_batches
from fastscore.vectors.models import verify_model

PROVIDER = "CUDAExecutionProvider"
TEXTS = [f"w{first} w{second}" for first in range(5) for second in range(5)]
plain_session = onnxruntime.InferenceSession


class FakeSession:
    """A session on a GPU, as far as it says; or one that fell back to the processor."""

    made: list["FakeSession"]

    def __init__(self, path, options, providers, disabled_optimizers):
        self.providers, self.batches = providers, []
        self._real = plain_session(
            path,
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=disabled_optimizers,
        )
        self.made.append(self)

    def get_providers(self):
        return [name for name, _ in self.providers] + ["CPUExecutionProvider"]

    def run(self, names, inputs, options):
        self.batches.append(inputs["input_ids"].shape)
        return self._real.run(names, inputs, options)


class FallenBack(FakeSession):
    def get_providers(self):
        return ["CPUExecutionProvider"]


@pytest.fixture
def provider(monkeypatch):
    """An installed CUDA provider, faked; returns a function that sets the kind of session."""
    monkeypatch.setattr(
        onnxruntime, "get_available_providers", lambda: [PROVIDER, "CPUExecutionProvider"]
    )
    preloaded = []
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: preloaded.append(True), raising=False)

    def use(kind):
        kind.made = []
        kind.preloaded = preloaded
        monkeypatch.setattr(onnxruntime, "InferenceSession", kind)
        return kind

    use(FakeSession)
    return use


def test_without_the_provider_one_sentence_names_the_command(tiny_cache):
    with pytest.raises(ModelError) as refused:
        Embedder("tiny", device=CUDA, cache_dir=tiny_cache)
    assert refused.value.message == (
        "The device cuda needs ONNX Runtime's CUDA provider, which is not installed."
    )
    assert refused.value.hint == (
        "Run: pip uninstall --yes onnxruntime onnxruntime-gpu && "
        "pip install 'fastscore-dialogue[cuda]'"
    )


def test_a_session_that_fell_back_to_the_processor_is_refused(tiny_cache, provider):
    provider(FallenBack)
    embedder = Embedder("tiny", device=CUDA, cache_dir=tiny_cache)
    with pytest.raises(ModelError, match=r"not run on cuda: ONNX Runtime fell back to CPUExec"):
        embedder.encode(["w1"])


def test_the_processor_is_asked_for_as_before(tiny_cache, provider):
    kind = provider(FallenBack)
    Embedder("tiny", cache_dir=tiny_cache).encode(["w1"])
    (session,) = kind.made
    assert session.providers == [("CPUExecutionProvider", {})]
    assert kind.preloaded == []


def test_vectors_of_a_gpu_go_the_same_way_through_the_embedder(tiny_cache, provider):
    expected = Embedder("tiny", cache_dir=tiny_cache).encode(TEXTS)
    FakeSession.made.clear()
    found = Embedder("tiny", device=CUDA, threads=3, cache_dir=tiny_cache).encode(TEXTS)
    np.testing.assert_array_equal(found, expected)
    (session,) = FakeSession.made
    assert session.providers == [(PROVIDER, {"use_tf32": "0"})]
    assert FakeSession.preloaded == [True]


def test_batches_and_windows_are_larger_on_a_gpu(tiny_cache, provider, monkeypatch):
    monkeypatch.setattr("fastscore.vectors.embedder.TOKENS_PER_BATCH", 8)
    monkeypatch.setattr("fastscore.vectors.embedder._TEXTS_PER_WINDOW", 5)
    texts = TEXTS * 8
    shapes = {}
    for device in DEVICES:
        FakeSession.made.clear()
        Embedder("tiny", device=device, threads=1, cache_dir=tiny_cache).encode(texts)
        shapes[device] = FakeSession.made[0].batches
    tokens = shapes[CPU][0][1]
    # of the processor: windows of 5 texts, of which the last joins; of a GPU: 40, cut by tokens
    assert max(rows for rows, _ in shapes[CPU]) <= 5
    assert max(rows for rows, _ in shapes[CUDA]) == min(40, 8 * 32 // tokens)
    assert sum(rows for rows, _ in shapes[CUDA]) == len(texts)
    assert len(list(cut_batches(1000, 4, device=CUDA))) < len(list(cut_batches(1000, 4)))


def test_stores_of_two_devices_never_mix_and_the_processors_stay(tiny_cache, provider):
    exact, gpu = (Embedder("tiny", device=device, cache_dir=tiny_cache) for device in DEVICES)
    assert exact.fingerprint != gpu.fingerprint
    assert exact.fingerprint == Embedder("tiny", cache_dir=tiny_cache).fingerprint


def test_accuracy_is_measured_kept_and_stated(own_cache, provider, monkeypatch):
    monkeypatch.setenv("FASTSCORE_CACHE", str(own_cache))
    gpu = Embedder("tiny", device=CUDA)
    with pytest.raises(ModelError, match="tiny in fp32 on cuda has not been measured") as refused:
        stated_accuracy(gpu)
    assert refused.value.hint == "Run `fastscore models verify tiny --device cuda`."
    found = verify_model("tiny", device=CUDA, texts=TEXTS)
    (measured,) = found.accuracies
    assert (measured.device, measured.precision, measured.label) == (CUDA, "fp32", "fp32 cuda")
    assert measured.cosine_min == pytest.approx(1)
    assert stated_accuracy(gpu) == measured
    kept = gpu.exported.folder / "accuracy-fp32-cuda.json"
    assert '"device": "cuda"' in kept.read_text()
    assert list_accuracies(gpu.exported.folder) == [measured]


def test_the_device_is_signed_unless_it_is_the_processor():
    exact = EmbedderIdentity(recipe="tiny", fingerprint="0123456789", precision="fp32", dim=64)
    gpu = dataclasses.replace(exact, device=CUDA, accuracy="cos=1.00000")
    assert str(exact) == "tiny@01234567,fp32,dim=64"
    assert str(gpu) == "tiny@01234567,fp32,cuda(cos=1.00000),dim=64"
    assert "device" not in exact.as_dict()
    assert gpu.as_dict()["device"] == CUDA

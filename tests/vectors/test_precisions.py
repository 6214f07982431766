"""Precisions and devices: refusals, the similarity of bf16, and options of a faked GPU."""

import dataclasses
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
from fastscore_jit.system import processor_flags
from onnx import TensorProto, helper

from fastscore.errors import ModelError
from fastscore.run.signature import EmbedderIdentity
from fastscore.vectors import accuracy, precisions
from fastscore.vectors.accuracy import (
    list_accuracies,
    measure_accuracy,
    reference_texts,
    save_accuracy,
    stated_accuracy,
)
from fastscore.vectors.embedder import Embedder, cut_batches
from fastscore.vectors.models import verify_model
from fastscore.vectors.precisions import CPU, CUDA, DEVICES
from tests.conftest import fastscore_command, often

HAS_BFLOAT16 = bool({"amx_bf16", "avx512_bf16"} & processor_flags())
needs_bfloat16 = pytest.mark.skipif(not HAS_BFLOAT16, reason="the processor has no bf16")


@pytest.fixture
def any_processor(monkeypatch):
    """A processor with AVX512-BF16, as far as fastscore can tell."""
    flags = frozenset({"avx512_bf16"})
    monkeypatch.setattr(precisions, "processor_flags", lambda: flags)


def test_bf16_is_refused_where_the_processor_lacks_it(tiny_cache, monkeypatch):
    monkeypatch.setattr(precisions, "processor_flags", lambda: frozenset({"avx512f", "fma"}))
    with pytest.raises(ModelError, match=r"neither amx_bf16 nor avx512_bf16.*precision to fp32"):
        Embedder("tiny", precision="bf16", cache_dir=tiny_cache)


def test_bf16_without_openvino_says_what_to_install(tiny_cache, any_processor, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ModelError, match=r"pip install 'fastscore-dialogue\[openvino\]'"):
        Embedder("tiny", precision="bf16", cache_dir=tiny_cache).encode(["w1"])


def test_openvino_is_imported_without_what_reports_over_the_network():
    pytest.importorskip("openvino")
    code = (
        "import sys\n"
        "from fastscore.vectors.precisions import import_openvino\n"
        "import_openvino()\n"
        "assert 'openvino' in sys.modules\n"
        "assert not [name for name in sys.modules if 'telemetry' in name]\n"
        "assert 'openvino.tools.ovc' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@needs_bfloat16
def test_bf16_is_near_fp32_and_independent_of_company(minilm):
    pytest.importorskip("openvino")
    texts = reference_texts()[: often(100, 500)]
    found = measure_accuracy(Embedder(precision="bf16", threads=2), texts, minilm.encode(texts))
    assert found.texts == often(100, 500)
    assert found.cosine_mean >= 0.9999
    assert found.cosine_min >= 0.9995
    assert found.difference_p99 <= 0.003
    assert found.batch_dependence == 0


@needs_bfloat16
def test_bf16_threads_do_not_change_a_bit(tiny_cache):
    pytest.importorskip("openvino")
    texts = [f"w{number % 26} w{number % 7}" for number in range(300)]
    one, two = (
        Embedder("tiny", precision="bf16", threads=threads, cache_dir=tiny_cache).encode(texts)
        for threads in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


class Rounded:
    """An embedder of known vectors, which are off in a known way."""

    precision, device = "fp32", "cpu"
    fingerprint = "f00d"

    def __init__(self, vectors):
        self._vectors = vectors

    def encode(self, texts):
        return np.array([self._vectors[int(text)] for text in texts], np.float32)


def test_figures_of_a_worked_example():
    # exact: three unit vectors in a plane; found: the second is turned by 0.1 radian
    angles = np.array([0.0, 1.0, 2.0])
    exact = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    off = angles + np.array([0.0, 0.1, 0.0])
    turned = np.stack([np.cos(off), np.sin(off)], axis=1)
    found = measure_accuracy(Rounded(turned), ["0", "1", "2"], exact)
    assert found.cosine_mean == pytest.approx((2 + np.cos(0.1)) / 3, abs=1e-6)
    assert found.cosine_min == pytest.approx(np.cos(0.1), abs=1e-6)
    # pairs at 1, 1 and 2 radian become 1.1, 0.9 and 2: the largest change is cos 1 - cos 1.1
    assert found.difference_p99 == pytest.approx(np.cos(1) - np.cos(1.1), abs=1e-6)
    assert found.batch_dependence == 0


def test_company_shows_as_batch_dependence():
    class Crowded(Rounded):
        def encode(self, texts):
            return super().encode(texts) + np.float32(1e-3) * (len(texts) - 1)

    vectors = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    found = measure_accuracy(Crowded(vectors), list("0123"), vectors)
    assert found.batch_dependence == pytest.approx(3e-3, rel=1e-3)


def graph(operator="Identity", domain="", weights=None):
    """Return a graph of one operator, whose weights may lie in another file."""
    kept = helper.make_tensor("w", TensorProto.FLOAT, [8], bytes(32), raw=True)
    if weights is not None:
        kept.ClearField("raw_data")
        kept.data_location = TensorProto.EXTERNAL
        for key, value in (("location", weights), ("offset", "0"), ("length", "32")):
            entry = kept.external_data.add()
            entry.key, entry.value = key, value
    node = helper.make_node(operator, ["w"], ["y"], domain=domain)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [8])
    versions = [helper.make_opsetid("", 17), helper.make_opsetid(domain or "any", 1)]
    made = helper.make_model(
        helper.make_graph([node], "graph", [], [result], [kept]), opset_imports=versions
    )
    made.ir_version = 8
    return made.SerializeToString()


@pytest.mark.parametrize("load", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("weights", ["../outside", "ABSOLUTE", "link", "/dev/zero"])
def test_no_graph_reads_weights_outside_its_folder(tmp_path, any_processor, load, weights):
    outside, folder = tmp_path / "outside", tmp_path / "model"
    outside.write_bytes(bytes(32))
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    path = folder / "model.onnx"
    path.write_bytes(graph(weights=str(outside) if weights == "ABSOLUTE" else weights))
    with pytest.raises(ModelError, match=r"cannot load .*model\.onnx"):
        load_graph(load, path)


def load_graph(load, path):
    if load == "onnxruntime":
        return precisions.run_in_onnxruntime(path)
    pytest.importorskip("openvino")
    return precisions.run_in_openvino(path, precision="bf16", threads=1)


@pytest.mark.parametrize("load", ["onnxruntime", "openvino"])
@pytest.mark.parametrize(
    ("operator", "domain"), [("Evil", "com.evil"), ("PyOp", "com.microsoft.extensions")]
)
def test_a_graph_of_operators_that_nobody_knows_is_refused(
    tmp_path, any_processor, load, operator, domain
):
    path = tmp_path / "model.onnx"
    path.write_bytes(graph())
    assert callable(load_graph("onnxruntime", path))
    path.write_bytes(graph(operator, domain))
    with pytest.raises(ModelError, match=operator):
        load_graph(load, path)


def test_a_precision_must_have_been_measured(own_cache, any_processor, monkeypatch):
    monkeypatch.setattr(accuracy, "version", lambda package: "1.0")
    fast = Embedder("tiny", precision="bf16", cache_dir=own_cache)
    with pytest.raises(ModelError, match=r"has not been measured.*models verify tiny"):
        stated_accuracy(fast)
    exact = Embedder("tiny", cache_dir=own_cache)
    measured = measure_accuracy(exact, ["w1", "w2", "w3"], exact.encode(["w1", "w2", "w3"]))
    figures = dataclasses.replace(
        measured, precision="bf16", fingerprint=fast.fingerprint, runtime="openvino 1.0"
    )
    save_accuracy(fast, figures)
    assert stated_accuracy(fast) == figures
    assert list_accuracies(fast.exported.folder) == [figures]
    assert str(figures) == "cos=1.00000,min=1.00000,rho=1.00000,p99=0.00000,texts=3"
    monkeypatch.setattr(accuracy, "version", lambda package: "2.0")
    with pytest.raises(ModelError, match=r"openvino 2\.0"):
        stated_accuracy(fast)
    assert stated_accuracy(exact) is None


def test_verify_command_measures_and_list_shows(own_cache):
    arguments = ["models", "verify", "tiny", "--precision", "fp32"]
    done = fastscore_command(arguments, FASTSCORE_CACHE=str(own_cache))
    assert done.returncode == 0, done.stderr
    header, row = done.stdout.splitlines()[-2:]
    assert header.split() == ["cos", "mean", "cos", "min", "spearman", "p99", "batch"]
    assert row.split()[:5] == ["fp32", "1.00000", "1.00000", "1.00000", "0.00000"]
    assert "500 texts, onnxruntime" in row
    listed = fastscore_command(["models", "list"], FASTSCORE_CACHE=str(own_cache)).stdout
    assert "fp32 against fp32: cos=1.00000" in listed


def test_verify_measures_what_can_run_and_says_why_the_rest_cannot(own_cache, monkeypatch):
    monkeypatch.setenv("FASTSCORE_CACHE", str(own_cache))
    monkeypatch.setattr(precisions, "processor_flags", lambda: frozenset())
    found = verify_model("tiny", texts=["w1", "w2", "w3"])
    assert [row.precision for row in found.accuracies] == ["fp32"]
    assert "AVX512-BF16" in found.refused["bf16"]
    assert found.reference_difference is None


# --- devices


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

"""Precisions: refusals, the similarity of bf16, and its statement in runs."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from fastscore_jit.system import processor_flags
from onnx import TensorProto, helper

from fastscore.errors import ModelError
from fastscore.vectors import accuracy, precisions
from fastscore.vectors.accuracy import (
    list_accuracies,
    measure_accuracy,
    reference_texts,
    save_accuracy,
    stated_accuracy,
)
from fastscore.vectors.embedder import Embedder
from fastscore.vectors.models import verify_model
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


def test_verify_command_measures_and_list_shows(own_cache, tmp_path):
    (tmp_path / "texts.txt").write_text("w1 w2\n\nw3\nw4 w5\n")
    arguments = ["models", "verify", "tiny", "--precision", "fp32"]
    done = fastscore_command(
        [*arguments, "--texts", tmp_path / "texts.txt"], FASTSCORE_CACHE=str(own_cache)
    )
    assert done.returncode == 0, done.stderr
    header, row = done.stdout.splitlines()[-2:]
    assert header.split() == ["cos", "mean", "cos", "min", "spearman", "p99", "batch"]
    assert row.split()[:5] == ["fp32", "1.00000", "1.00000", "1.00000", "0.00000"]
    assert "3 texts, onnxruntime" in row
    listed = fastscore_command(["models", "list"], FASTSCORE_CACHE=str(own_cache)).stdout
    assert "fp32 against fp32: cos=1.00000" in listed
    (tmp_path / "texts.txt").write_text("one\n")
    done = fastscore_command(
        [*arguments, "--texts", tmp_path / "texts.txt"], FASTSCORE_CACHE=str(own_cache)
    )
    assert done.returncode == 2
    assert "expected at least 2" in done.stderr


def test_verify_measures_what_can_run_and_says_why_the_rest_cannot(own_cache, monkeypatch):
    monkeypatch.setenv("FASTSCORE_CACHE", str(own_cache))
    monkeypatch.setattr(precisions, "processor_flags", lambda: frozenset())
    found = verify_model("tiny", texts=["w1", "w2", "w3"])
    assert [row.precision for row in found.accuracies] == ["fp32"]
    assert "AVX512-BF16" in found.refused["bf16"]
    assert found.reference_difference is None

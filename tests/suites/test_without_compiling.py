"""Where nothing is compiled, every suite gives the same bytes: kernels are plain Python then."""

from pathlib import Path

import pytest
from fastscore_jit.declaring import JIT_DISABLED

from fastscore.examples import example_names
from tests.run.running import table_bytes
from tests.suites.golden.numbers import score_example


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
@pytest.mark.slow
@pytest.mark.parametrize("suite", example_names())
def test_tables_are_the_same_byte_for_byte(suite: str, tmp_path: Path) -> None:
    compiled = score_example(suite, tmp_path / "compiled" / suite)
    before = table_bytes(compiled)
    compiled.parent.rename(tmp_path / "kept")
    plain = score_example(suite, tmp_path / "compiled" / suite, NUMBA_DISABLE_JIT="1")
    assert before.keys() == table_bytes(plain).keys()
    assert before == table_bytes(plain)

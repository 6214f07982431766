from pathlib import Path

import pytest

from tests.models.tiny_bert import write_folder


@pytest.fixture
def tiny_folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "tiny")

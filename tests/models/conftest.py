import pytest

from tests.models.tiny_bert import write_folder


@pytest.fixture
def tiny_folder(tmp_path):
    return write_folder(tmp_path / "tiny")

"""One tiny model for all tests of the policies."""

from pathlib import Path

import pytest

from ..tiny import make_tiny


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny(tmp_path_factory.mktemp("tiny"))

"""A tiny study that is not trained yet."""

from pathlib import Path

import pytest
from small import tiny_study


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(tiny_study())
    return path

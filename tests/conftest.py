"""What many tests share."""

import os
from pathlib import Path

import pytest
from small import tiny_config

from evergait.training.run import train

os.environ["NO_COLOR"] = "1"


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished tiny run; not to be changed."""
    out = tmp_path_factory.mktemp("trained") / "run"
    train(tiny_config(), out, threads=1)
    return out

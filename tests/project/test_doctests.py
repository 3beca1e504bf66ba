"""Examples in docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import evergait

MODULES = [m.name for m in pkgutil.walk_packages(evergait.__path__, "evergait.") if not m.name.endswith("__main__")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0

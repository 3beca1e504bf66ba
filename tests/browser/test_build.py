"""The module can be made again from the sources: with the same compiler, the same bytes; in any case the same bits."""

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser.conftest import caller, write_bare
from browser.test_bits import TASKS, episodes, received, same_bits
from evergait.engines.planar.engine import PlanarEngine

SCRIPT = Path(__file__).parents[2] / "scripts" / "wasm.py"


@pytest.mark.prove
def test_a_module_built_now_has_the_bits_of_the_native_core(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="the compiler for browsers is not installed")
    built = tmp_path / "evergait.wasm.gz"
    subprocess.run([sys.executable, str(SCRIPT), "--force", "--output", str(built)], check=True)
    page = browser.new_context().new_page()
    call = caller(page, write_bare(tmp_path / "bare.html", base64.b64encode(built.read_bytes()).decode()))
    for name in TASKS:
        request, argument = episodes(name, normalise=True)
        found = call("episodes", **argument)
        assert same_bits(received(found["returns"], np.float64), PlanarEngine().run(request, 1).returns), name
    page.context.close()

"""Notebooks run from top to bottom, carry what they show, and open elsewhere."""

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "notebooks.py"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # Jupyter's own, of its own future
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = SCRIPT["execute"](path, tmp_path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    assert any(output for cell in code for output in cell.outputs)


def test_there_are_three_with_badges_and_outputs() -> None:
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text())
        assert "colab-badge.svg" in "".join(notebook["cells"][0]["source"])
        assert any(cell.get("outputs") for cell in notebook["cells"]), f"{path.name}: run scripts/notebooks.py"
        assert path.stat().st_size < 1_000_000

"""Run the notebooks and keep what they show: `python scripts/notebooks.py` after a change."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
LARGEST = 300_000
"""Bytes of an output that is kept."""


def execute(path: Path, folder: Path) -> Any:
    """A notebook with its outputs, run in a folder; an error in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    return client.execute()


def main() -> None:
    """Run all of them and write them back."""
    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            notebook = execute(path, Path(folder))
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)
            # Warnings name this machine's paths.
            shown = [o for o in cell.get("outputs", []) if o.get("name") != "stderr"]
            cell.outputs = [o for o in shown if len(str(o)) < LARGEST]
            if cell.cell_type != "code":
                del cell["outputs"]
        path.write_text(nbformat.writes(notebook) + "\n")  # type: ignore[no-untyped-call]
        sys.stdout.write(f"{path.name}: {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()

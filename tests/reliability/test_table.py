"""The table in docs/reliability.md says what was measured, and nothing else."""

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_the_table_is_what_was_measured_and_nothing_is_lost() -> None:
    spec = importlib.util.spec_from_file_location("reliability", ROOT / "scripts" / "reliability.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    figures = json.loads((ROOT / "docs" / "reliability.json").read_text())
    page = (ROOT / "docs" / "reliability.md").read_text()
    assert f"<!-- measured -->\n\n{script.table(figures)}\n\n<!-- end -->" in page
    assert set(figures) <= set(script.FAULTS)
    assert sum(figure["lost"] for figure in figures.values()) == 0

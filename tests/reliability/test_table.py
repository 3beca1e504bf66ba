"""The table in docs/reliability.md says what was measured, and nothing else."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from faults import write_counts

ROOT = Path(__file__).parent.parent.parent
QUICK = {
    "hostile": ("reliability.test_hostile", "", "files and folders of a stranger, each under several commands"),
    "imports": ("reliability.test_hostile", "import", "only training imports them, and says so"),
    "formats": ("reliability.test_formats", "", "files of every version: loaded, shown, reported, resumed"),
    "surroundings": (
        "reliability.test_surroundings",
        "start_methods clocks name encoding moved",
        "start methods, clocks, names, encodings, moved folders",
    ),
    "escapes": ("reliability.test_surroundings", "inert escape", "printed as text"),
    "archives": ("store.test_archive", "", "the same bytes back, damage noticed, strangers' archives refused"),
    "pages": ("browser.test_watch", "own_page touching line damaged folder hostile", "in a real browser, too"),
    "arrays": ("vector.test_environment", "mistakes diverges", "refused by name, and nothing has changed"),
    "retrained": ("commands.test_retrain", "", "`verify --train` and `reproduce`"),
    "lock": ("project.test_setup", "lock", "`make setup` takes nothing else"),
}
"""Fault → module under tests, words of which a test's name has one, note."""


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


@pytest.mark.prove
def test_quick_tests_are_counted(tmp_path: Path) -> None:
    """Tests that need no repetition, run once more, in numbers."""
    files = sorted({f"tests/{module.replace('.', '/')}.py" for module, _, _ in QUICK.values()})
    out = tmp_path / "results.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not prove", "-p", "no:cacheprovider", f"--junitxml={out}"]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    passed = [case.attrib for case in ET.parse(out).iter("testcase") if not len(case)]  # noqa: S314 - our own
    for fault, (module, words, note) in QUICK.items():
        names = [case["name"] for case in passed if case["classname"] == f"tests.{module}"]
        n = sum(not words or any(word in name for word in words.split()) for name in names)
        assert n, fault
        write_counts(fault, n, 0, note)

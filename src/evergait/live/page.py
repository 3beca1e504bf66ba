"""Pages of this package: a template, with styles, scripts, the workers' script and data put in."""

import base64
import functools
import importlib.resources
from typing import Any

from markupsafe import Markup

from evergait.report.html import Alive, asset, one_function, render, templates

FILES = importlib.resources.files("evergait") / "live"
"""The package's files; among them the engine as WebAssembly, which scripts/wasm.py compiles from native/."""
SHARED = ("core.js", "gait.js", "forward.js")
"""Of the report: small helpers, the theme, drawing on a canvas, and films of that."""
ENGINE = ("engine.js", "es.js")
STAGE = (*ENGINE, "trainer.js", "unpack.js", "stage.js")
LAB_SCRIPTS = (*STAGE, "lab.js", "training.js")
WORKER = (*ENGINE, "worker.js")
WATCH_SCRIPTS = (*STAGE, "watch.js")
START = 'document.documentElement.classList.add("scripted");\nstartTheme();\n'


@functools.cache
def packed_module() -> str:
    """The packed module in base64; pages unpack it themselves."""
    return base64.b64encode((FILES / "evergait.wasm.gz").read_bytes()).decode()


@functools.cache
def assets(*names: str) -> str:
    """Scripts or styles of this package, joined in order."""
    return "\n".join((FILES / "assets" / name).read_text() for name in names)


def worker() -> Markup:
    """The script of the workers that train in a page."""
    return Markup(f'"use strict";\n{assets(*WORKER)}')  # noqa: S704 - our own files


def render_lab(data: dict[str, Any], **page: Any) -> str:
    """A page of its own, in which robots live; it may run its own script and module, and load nothing."""
    start = f'{START}startLab(JSON.parse($("#data").textContent));'
    return _render("lab.html", LAB_SCRIPTS, start, data, ("live.css",), alive=True, worker=worker(), **page)


def inside_report(data: dict[str, Any]) -> Alive:
    """The same as a part of a report."""
    body = templates("evergait.live").get_template("alive.html").module.inside(worker(), data["messages"])  # type: ignore[attr-defined]
    return Alive(body, assets(*LAB_SCRIPTS), assets("live.css"), data)


def render_watch(folder: str) -> str:
    """The page that follows trainings: it asks our server, and nobody else; its own data are the engine alone."""
    start, data = f"{START}startWatch();", {"module": packed_module()}
    title = f"evergait watches {folder}"
    return _render("watch.html", WATCH_SCRIPTS, start, data, ("live.css",), folder=folder, title=title)


def _render(
    template: str, scripts: tuple[str, ...], start: str, data: dict[str, Any], styles: tuple[str, ...], **page: Any
) -> str:
    script = one_function(*map(asset, SHARED), assets(*scripts), start)
    return render(template, data, script, assets(*styles), package="evergait.live", **page)

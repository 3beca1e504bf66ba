"""Pages of this package: a template, with styles, scripts, the workers' script and data put in."""

import base64
import functools
import hashlib
import importlib.resources
from typing import Any

import jinja2
from markupsafe import Markup

import evergait
from evergait.report.escape import script_json
from evergait.report.html import ASSETS as REPORT_ASSETS

FILES = importlib.resources.files("evergait") / "live"
"""The package's files; among them the engine as WebAssembly, which scripts/wasm.py compiles from native/."""
SHARED = ("core.js", "gait.js")
"""Of the report: small helpers, the theme, drawing on a canvas, and films of that."""
ENGINE = ("engine.js", "es.js")
LAB_SCRIPTS = (
    *ENGINE,
    "digest.js",
    "crew.js",
    "trainer.js",
    "unpack.js",
    "stage.js",
    "chart.js",
    "lab.js",
    "training.js",
)
WORKER = (*ENGINE, "worker.js")
WATCH_SCRIPTS = (*ENGINE, "trainer.js", "unpack.js", "stage.js", "lines.js", "watch.js")
STYLES = ("colours.css", "page.css", "player.css")


@functools.cache
def packed_module() -> str:
    """The packed module in base64; pages unpack it themselves."""
    return base64.b64encode((FILES / "evergait.wasm.gz").read_bytes()).decode()


@functools.cache
def assets(*names: str) -> str:
    """Scripts or styles of this package, joined in order."""
    return "\n".join((FILES / "assets" / name).read_text() for name in names)


def render(template: str, data: dict[str, Any], **page: Any) -> str:
    """The lab's page, with the script of its workers."""
    worker = Markup(f'"use strict";\n{assets(*WORKER)}')  # noqa: S704 - our own files
    return render_page(template, LAB_SCRIPTS, "startLab();", data, ("lab.css",), worker=worker, **page)


def render_watch(folder: str) -> str:
    """The page that follows trainings: it asks our server, and nobody else; its own data are the engine alone."""
    return render_page(
        "watch.html",
        WATCH_SCRIPTS,
        "startWatch();",
        {"module": packed_module()},
        ("lab.css", "watch.css"),
        title=folder,
    )


def render_page(
    template: str, scripts: tuple[str, ...], start: str, data: dict[str, Any], styles: tuple[str, ...], **page: Any
) -> str:
    """A page; its policy lets it run its own script and its own module, and load nothing from elsewhere."""
    shared = "\n".join((REPORT_ASSETS / name).read_text() for name in SHARED)
    script = f'(() => {{\n"use strict";\n{shared}\n{assets(*scripts)}\n{start}\n}})();'
    style = "\n".join((REPORT_ASSETS / name).read_text() for name in STYLES) + assets(*styles)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _templates()
        .get_template(template)
        .render(
            **page,
            data=script_json(data),
            script=Markup(script),  # noqa: S704 - our own files
            style=Markup(style),  # noqa: S704 - our own files
            script_hash=f"sha256-{digest}",
            version=evergait.__version__,
        )
    )


@functools.cache
def _templates() -> jinja2.Environment:
    loader = jinja2.PackageLoader("evergait.live")
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)

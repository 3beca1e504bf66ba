"""The page that follows trainings: it asks our server, and nobody else, for everything that it shows."""

from evergait.live.module import packed_module
from evergait.live.page import ENGINE, render_page

SCRIPTS = (*ENGINE, "trainer.js", "unpack.js", "stage.js", "lines.js", "phases.js", "watch.js")


def render_watch(folder: str) -> str:
    """The page; its data are the engine alone."""
    return render_page(
        "watch.html", SCRIPTS, "startWatch();", {"module": packed_module()}, ("lab.css", "watch.css"), title=folder
    )

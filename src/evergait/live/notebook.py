"""`evergait.watch` for Python and notebooks: the page of `evergait watch`, served by this process."""

import html
import threading
from pathlib import Path

from evergait.live.watch.server import Server


class Watching:
    """A page that follows a folder's trainings; a notebook shows it in place."""

    def __init__(self, folder: str | Path, height: int = 900) -> None:
        self._server, self._height = Server(Path(folder)), height
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """Where the page is, for browsers of this machine."""
        return self._server.address

    def close(self) -> None:
        """Stop serving it."""
        self._server.close()

    def __repr__(self) -> str:
        return f"watching {self._server.answers.folder} at {self.address}"

    def _repr_html_(self) -> str:
        source = html.escape(self.address, quote=True)
        return f'<iframe src="{source}" style="width: 100%; height: {self._height}px; border: 0"></iframe>'


def watch(folder: str | Path, height: int = 900) -> Watching:
    """Follow the trainings in a folder on a page of this machine; it reads their files and never slows them."""
    return Watching(folder, height)

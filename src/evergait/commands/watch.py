"""`evergait watch`: a local page that follows trainings and studies."""

import threading
from dataclasses import dataclass
from pathlib import Path

import tyro

from evergait.commands.base import console, errors, open_page
from evergait.core.data import require
from evergait.core.errors import EvergaitError


@dataclass(frozen=True)
class Watch:
    """Follow trainings and studies on a local page: curves, phases, speed, and gaits of the newest checkpoint."""

    folder: tyro.conf.Positional[Path]
    """Folder of a run or a study, or one that has some below it."""
    open: bool = True
    """Open the page in a browser, where there is one; --no-open prints its address only."""
    port: int = 0
    """Port on 127.0.0.1; 0 takes a free one."""

    def run(self) -> int:
        """Serve until Ctrl-C."""
        from evergait.live.server import Server

        require(0 <= self.port < 65536, "port", self.port, "from 0 to 65535")
        try:
            server = Server(self.folder, self.port)
        except OSError as error:
            raise EvergaitError(f"port: {self.port} on 127.0.0.1: {error.strerror}") from error
        if not server.answers.watches:
            errors.print(f"There is no run or study in {self.folder} yet.", markup=False, soft_wrap=True)
        console.print(server.address, markup=False, soft_wrap=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        if self.open:
            open_page(server.address)
        try:
            threading.Event().wait()
        finally:
            server.close()
        return 0

"""The page's server: 127.0.0.1 only, a random word in its address, reading only, one thread per question.

Browsers send any page's requests to 127.0.0.1, so every request must name our own host (a page that has rebound its
name to this machine cannot), must not come from another origin, and must know the word.
"""

import html
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from evergait.core.errors import EvergaitError
from evergait.core.files import as_path, read_bytes
from evergait.live.answers import Answers, as_text, to_json
from evergait.live.page import render_watch

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}
STRANGER = {"Content-Security-Policy": "sandbox allow-scripts allow-popups allow-downloads allow-modals"}
"""For a report, which a stranger may have made: its scripts are of no origin, and so cannot ask this server."""
LOOPBACK = ("127.0.0.1", "localhost")
LEAST_SECONDS, SHARE = 2.0, 0.005
"""Between two looks at the files, and the share of one processor that looking, or searching, may take."""
SEARCH_SECONDS = 5.0
"""Between two searches for trainings that were not there before."""
QUIET_SECONDS = 15.0
"""After so long without news the page is told that we are there; no two looks are further apart."""


class Server(ThreadingHTTPServer):
    """Serves one folder until it is closed."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int = 0) -> None:
        if not folder.is_dir():
            raise EvergaitError(f"folder: {folder} is not a folder")
        self.answers, self.word, self.closing = Answers(folder), secrets.token_urlsafe(24), threading.Event()
        super().__init__(("127.0.0.1", port), Handler)

    @property
    def address(self) -> str:
        """Where the page is; whoever knows it may read the folder's trainings."""
        return f"http://127.0.0.1:{self.server_address[1]}/{self.word}/"

    def close(self) -> None:
        """Stop serving."""
        self.closing.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that was closed in the middle of an answer is nobody's error."""


class Handler(BaseHTTPRequestHandler):
    """One question."""

    server: Server
    server_version = "evergait"
    sys_version = ""
    timeout = 60
    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        """Answer, if the question comes from our own page."""
        split = urlsplit(self.path)
        start = f"/{self.server.word}/"
        if not self._is_ours() or not secrets.compare_digest(split.path[: len(start)].encode(), start.encode()):
            return self._send(403, self._stranger().encode(), "text/plain")
        page = split.path[len(start) :]
        answer = self.PAGES.get(page)
        if answer is None:
            return self._send(404, b"There is no such page.", "text/plain")
        asked = {name: values[0] for name, values in parse_qs(split.query).items()}
        try:
            return answer(self, asked)
        except (EvergaitError, ValueError, KeyError) as error:
            return self._send(400, to_json({"error": str(error)}))

    def _hosts(self) -> set[str]:
        """How a browser of this machine names this server; it leaves out the port 80."""
        port = self.server.server_address[1]
        return {f"{name}:{port}" for name in LOOPBACK} | {name for name in LOOPBACK if port == 80}

    def _stranger(self) -> str:
        host, port = self.headers.get("Host", ""), self.server.server_address[1]
        if host.partition(":")[0] in LOOPBACK and host not in self._hosts():
            same = f"ssh -L {port}:127.0.0.1:{port}"
            return f"This page is at port {port}. A tunnel to it must have the same port number at both ends: {same}"
        return "This address is not for you."

    def _is_ours(self) -> bool:
        """Whether the request names this server as its host, and no other page as its origin."""
        hosts = self._hosts()
        origin = self.headers.get("Origin")
        other = self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
        is_page = self.path == f"/{self.server.word}/"  # following a link to the page itself is fine
        mine = origin is None or origin.removeprefix("http://") in hosts
        return self.headers.get("Host") in hosts and mine and (is_page or not other)

    def _page(self, asked: dict[str, str]) -> None:
        self._send(200, render_watch(as_text(self.server.answers.folder)).encode(), "text/html; charset=utf-8")

    def _report(self, asked: dict[str, str]) -> None:
        path = self.server.answers.training(asked["training"]).report
        if path is None:
            raise EvergaitError("there is no report yet; `evergait report` makes one")
        self._send(200, read_bytes(path), "text/html; charset=utf-8", STRANGER)

    def _curves(self, asked: dict[str, str]) -> None:
        self._send(200, to_json(self.server.answers.curves(asked["training"], asked["names"].split(","))))

    def _policy(self, asked: dict[str, str]) -> None:
        try:
            answer = self.server.answers.policy(asked["training"], asked["name"])
        except EvergaitError as error:  # such as that there is no checkpoint yet: the page says it in words
            answer = {"error": str(error)}
        self._send(200, to_json(answer))

    def _events(self, asked: dict[str, str]) -> None:
        """Server-sent events: everything first, then what has changed, as long as the page listens."""
        self._head(200, "text/event-stream")
        try:
            self._tell()
        except EvergaitError as error:  # the head has been sent
            self._event("refused", to_json(str(error)))

    def _tell(self) -> None:
        answers = Answers(self.server.answers.folder)  # what this page knows is its own
        self._event("everything", to_json(answers.everything()))
        spoken, search = time.monotonic(), time.monotonic() + SEARCH_SECONDS
        while not self.server.closing.is_set():
            if time.monotonic() > search:
                began = time.thread_time()
                is_new = answers.refresh()
                search = time.monotonic() + max(SEARCH_SECONDS, (time.thread_time() - began) / SHARE)
                if is_new:
                    self._event("everything", to_json(answers.everything()))
            began = time.thread_time()
            changes = answers.changes()
            pause = (time.thread_time() - began) / SHARE
            if changes or time.monotonic() - spoken > QUIET_SECONDS:
                self._event("changes", to_json(changes))
                spoken = time.monotonic()
            self.server.closing.wait(min(max(LEAST_SECONDS, pause), QUIET_SECONDS))

    def _event(self, name: str, data: bytes) -> None:
        self.wfile.write(f"event: {name}\ndata: ".encode() + data + b"\n\n")
        self.wfile.flush()

    PAGES: ClassVar[dict[str, Callable[["Handler", dict[str, str]], None]]] = {
        "": _page,
        "report": _report,
        "curves": _curves,
        "policy": _policy,
        "events": _events,
    }

    def _send(
        self, code: int, content: bytes, kind: str = "application/json", more: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._head(code, kind, len(content), more)
        self.wfile.write(content)

    def _head(
        self, code: int, kind: str, length: int | None = None, more: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.send_response(code)
        for name, value in {**HEADERS, **more, "Content-Type": kind}.items():
            self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - its parent's name
        """Requests are not worth a line."""


class Watching:
    """A page that follows a folder's trainings; a notebook shows it in place."""

    def __init__(self, folder: str | Path, height: int = 900) -> None:
        self._server, self._height = Server(as_path(folder, "folder")), height
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

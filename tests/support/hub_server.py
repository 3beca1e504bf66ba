"""A stand-in for the Hugging Face hub on this machine: the part of its HTTP protocol that we use.

Repositories are folders. Small and large files alike are sent inline ("regular"), as the hub lets small ones be.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, data: object, code: int = 200, **headers: str) -> None:
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_response(code)
        kind = "application/octet-stream" if isinstance(data, bytes) else "application/json"
        for name, value in {"Content-Type": kind, **headers, "Content-Length": str(len(body))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def repository(self) -> Path | None:
        found = re.match(r"/(?:api/models/)?([\w.-]+/[\w.-]+)", self.path)
        folder = self.server.root / found[1] if found else None
        return folder if folder and folder.is_dir() else None

    def do_GET(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        folder = self.repository()
        if folder is None:
            return self.answer({"error": "Repository not found"}, 404, X_Error_Code="RepoNotFound")
        files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        if self.path.startswith("/api/models/"):
            if "/tree/" in self.path:
                tree = [
                    {"type": "file", "path": file, "size": (folder / file).stat().st_size, "oid": COMMIT}
                    for file in files
                ]
                return self.answer(tree)
            name = f"{folder.parent.name}/{folder.name}"
            siblings = [{"rfilename": file} for file in files]
            return self.answer({"id": name, "sha": COMMIT, "siblings": siblings, "private": False, "tags": []})
        file = re.sub(r"^/[\w.-]+/[\w.-]+/resolve/[^/]+/", "", self.path)
        if file not in files:
            return self.answer({"error": "Entry not found"}, 404, X_Error_Code="EntryNotFound", X_Repo_Commit=COMMIT)
        content = (folder / file).read_bytes()
        etag = f'"{hashlib.sha1(content).hexdigest()}"'  # noqa: S324 - as git names it
        return self.answer(content, ETag=etag, X_Repo_Commit=COMMIT)

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Authorization") != "Bearer hf_stand_in":
            return self.answer({"error": "Unauthorized"}, 401)
        if self.path == "/api/repos/create":
            wanted = json.loads(body)
            name = f"{wanted.get('organization') or 'someone'}/{wanted['name']}"
            (self.server.root / name).mkdir(parents=True, exist_ok=True)
            return self.answer({"url": f"{self.server.address}/{name}", "name": name, "id": name})
        if self.path == "/api/validate-yaml":
            return self.answer({"errors": [], "warnings": []})
        folder = self.repository()
        if folder is None:
            return self.answer({"error": "Repository not found"}, 404, X_Error_Code="RepoNotFound")
        if "/preupload/" in self.path:
            files = json.loads(body)["files"]
            modes = [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False, "oid": None} for f in files]
            return self.answer({"files": modes})
        for line in map(json.loads, body.splitlines()):  # /commit/: one JSON object per line
            if line["key"] == "file":
                path = folder / line["value"]["path"]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(base64.b64decode(line["value"]["content"]))
        name = f"{folder.parent.name}/{folder.name}"
        url = f"{self.server.address}/{name}/commit/{COMMIT}"
        return self.answer({"success": True, "commitOid": COMMIT, "commitUrl": url, "hookOutput": ""})


@contextmanager
def hub(root: Path) -> Iterator[Any]:
    """A hub with the repositories in a folder; `asked` has every request that came."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.root, server.asked, server.address = root, [], f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

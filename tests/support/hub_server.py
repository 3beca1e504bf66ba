"""A stand-in for the Hugging Face hub on this machine: the part of its HTTP protocol that we use.

Repositories are folders. Text is sent inline ("regular"); safetensors of any size go by Git LFS, as the hub has it.
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

LFS = ".safetensors"
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

    def do_PUT(self) -> None:
        """The content of a large file, to the address that the batch gave; it must be what was announced."""
        self.server.asked.append(f"{self.command} {self.path}")
        content, oid = self.rfile.read(int(self.headers["Content-Length"])), self.path.removeprefix("/lfs/")
        if self.server.refuses == "PUT" or hashlib.sha256(content).hexdigest() != oid:
            return self.answer({"error": "Digest mismatch"}, 400)
        self.server.objects[oid] = content
        return self.answer(b"")

    def do_GET(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        if self.path.startswith("/lfs/"):
            return self.answer(self.server.objects[self.path.removeprefix("/lfs/")])
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
        if file.endswith(LFS):  # on another host, as the hub has it
            elsewhere = self.server.address.replace("127.0.0.1", "localhost")
            oid = hashlib.sha256(content).hexdigest()
            self.server.objects[oid] = content
            linked = {"X_Linked_ETag": f'"{oid}"', "X_Linked_Size": str(len(content))}
            return self.answer(b"", 302, Location=f"{elsewhere}/lfs/{oid}", X_Repo_Commit=COMMIT, **linked)
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
        if self.path.endswith(".git/info/lfs/objects/batch"):
            objects = json.loads(body)["objects"]
            for one in objects:
                one["actions"] = {"upload": {"href": f"{self.server.address}/lfs/{one['oid']}"}}
            return self.answer({"transfer": "basic", "objects": objects})
        folder = self.repository()
        if folder is None:
            return self.answer({"error": "Repository not found"}, 404, X_Error_Code="RepoNotFound")
        if "/preupload/" in self.path:
            files = json.loads(body)["files"]
            modes = {f["path"]: "lfs" if f["path"].endswith(LFS) else "regular" for f in files}
            told = [{"path": f, "uploadMode": mode, "shouldIgnore": False, "oid": None} for f, mode in modes.items()]
            return self.answer({"files": told})
        for line in map(json.loads, body.splitlines()):  # /commit/: one JSON object per line
            if line["key"] in ("file", "lfsFile"):
                value = line["value"]
                path = folder / value["path"]
                path.parent.mkdir(parents=True, exist_ok=True)
                is_large = line["key"] == "lfsFile"
                path.write_bytes(self.server.objects[value["oid"]] if is_large else base64.b64decode(value["content"]))
        name = f"{folder.parent.name}/{folder.name}"
        url = f"{self.server.address}/{name}/commit/{COMMIT}"
        return self.answer({"success": True, "commitOid": COMMIT, "commitUrl": url, "hookOutput": ""})


@contextmanager
def hub(root: Path) -> Iterator[Any]:
    """A hub with the repositories in a folder; `asked` has every request that came, `objects` the large files."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.root, server.asked, server.objects, server.refuses = root, [], {}, ""
    server.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

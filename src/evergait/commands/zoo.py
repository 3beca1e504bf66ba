"""`evergait zoo`: trained policies that ship, or are on the Hugging Face hub."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from evergait.commands.base import console, print_json, print_table
from evergait.core.data import require
from evergait.core.errors import EvergaitError
from evergait.tasks.base import short
from evergait.training.run import Run
from evergait.zoo import card, catalogue, choice, download, get, pretrained, upload
from evergait.zoo.card import final_returns


@dataclass(frozen=True)
class Zoo:
    """List trained policies; get one as a run that every command takes; share a run of yours."""

    name: tyro.conf.Positional[str] = ""
    """A policy of the list, or owner/name of one on the Hugging Face hub."""
    out: Path | None = None
    """Folder to put it in; without it, its card is printed."""
    upload: Path | None = None
    """Folder of a run of yours, to be put on the hub as owner/name."""
    store: Path | None = None
    """Where the phases of the run to upload are, if outside its folder."""
    private: bool = False
    """Make the hub's repository a private one."""
    revision: str = "main"
    """Branch, tag or commit on the hub."""
    json: bool = False
    """Print JSON, for programs."""

    def run(self) -> int:
        """List, print, get or share."""
        if not self.name:
            require(self.out is None and self.upload is None, "name", self.name, "a policy, or owner/name on the hub")
            return self._list()
        on_hub = "/" in self.name
        if self.upload:
            require(on_hub, "name", self.name, "owner/name, to upload to")
            address = upload(Run.load(self.upload, self.store), self.name, self.private)
            console.print(f"Uploaded {self.upload} to {address}.", markup=False, soft_wrap=True)
            return 0
        if self.out is None:
            return self._card(on_hub)
        run = download(self.name, self.out, self.revision) if on_hub else get(self.name, self.out)
        tasks = ", ".join(final_returns(run))
        console.print(f"Wrote {self.out}: {tasks}. Try `evergait show {self.out}`.", markup=False, soft_wrap=True)
        return 0

    def _list(self) -> int:
        described = [_described(name, run) for name, run in catalogue().items()]
        if self.json:
            print_json(described)
            return 0
        rows = [
            (d["name"], d["method"], ", ".join(f"{short(t)} {r:.0f}" for t, r in d["returns"].items()))
            for d in described
        ]
        print_table("Policies that ship", ["name", "method", "mean return after the last task"], rows)
        console.print("`evergait zoo NAME --out FOLDER` gets one; `evergait zoo owner/name` asks the hub.", style="dim")
        console.print("`evergait play --pretrained walker` shows one at once.", style="dim")
        return 0

    def _card(self, on_hub: bool) -> int:
        if on_hub:
            raise EvergaitError(f"out: name a folder for {self.name}, as in --out runs/{self.name.rpartition('/')[2]}")
        run = pretrained(self.name)
        if self.json:
            print_json(_described(self.name, run))
        else:
            console.out(card(run, self.name, choice(self.name)), highlight=False)
        return 0


def _described(name: str, run: Run) -> dict[str, Any]:
    return {"name": name, "method": run.config.method.name, "returns": final_returns(run)}

"""Policies on the Hugging Face hub: a repository is the folder of a run, with a card and the policy as one file."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evergait.core.errors import EvergaitError
from evergait.core.files import read_json
from evergait.store.phases import PARTS
from evergait.training.run import Run
from evergait.zoo.card import share
from evergait.zoo.catalogue import require_new

FILES = ("config.toml", "run.json", *(f"phases/*/{part}" for part in (*PARTS, "progress.json")))
"""What a run consists of; nothing else is asked for."""


def download(name: str, out: Path, revision: str = "main") -> Run:
    """Fetch owner/name into a folder of its own. It is data: nothing of it is executed.

    What is written is made from the run that was read: its card and its policy as one file, too.
    """
    require_new(out)
    with tempfile.TemporaryDirectory() as folder:
        with _hub(name) as hub:
            hub.snapshot_download(name, revision=revision, local_dir=folder, allow_patterns=list(FILES))
        path = Path(folder)  # what is no whole run is not written
        if not (path / "run.json").exists() or read_json(path / "run.json").get("store") != "phases":
            raise EvergaitError(
                f"zoo: {name} is not a policy of evergait (`evergait zoo owner/name --upload` makes one)"
            )
        run = Run.load(path)
        if not run.is_done or not run.ledgers:
            raise EvergaitError(f"zoo: {name} lacks phases of its run")
        for stage in range(len(run.phases)):
            run.state(stage)  # says what is damaged
        share(run, out, name)
    return Run.load(out)


def upload(run: Run, name: str, private: bool = False) -> str:
    """Make or renew owner/name from a run; its address."""
    with tempfile.TemporaryDirectory() as folder:
        share(run, Path(folder), name)
        with _hub(name) as hub:
            hub.create_repo(name, private=private, exist_ok=True)
            hub.upload_folder(repo_id=name, folder_path=folder, commit_message="A policy trained by evergait")
            return f"{hub.endpoint}/{name}"


@contextmanager
def _hub(name: str) -> Iterator[Any]:
    """The hub's own library; what it complains of becomes a sentence."""
    try:
        import huggingface_hub
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError as error:
        raise EvergaitError("zoo: huggingface_hub is not installed: pip install 'evergait[hub]'") from error
    try:
        yield huggingface_hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT"), library_name="evergait")
    except HFValidationError as error:
        raise EvergaitError(f"zoo: {name!r} is no name on the hub; it must look like owner/name") from error
    except (HfHubHTTPError, OSError, RuntimeError, ValueError) as error:  # the last two: uploads that break half-way
        words = str(error).strip().splitlines()
        raise EvergaitError(f"zoo: the hub and {name}: {words[-1] if words else error!r}") from error

"""`evergait completion`: what the shell should offer after Tab, as a script for bash, zsh or fish."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import gymnasium
import tyro

from evergait.commands.base import console
from evergait.config import presets
from evergait.core.files import write_atomically
from evergait.engines import available
from evergait.es import Optimizer
from evergait.methods import Method
from evergait.workers import WorkersChoice

Shell = Literal["bash", "zsh", "fish"]
STUDY = ("run", "plan", "status", "pack", "unpack")
HELP = {"train": "--help-all"}
"""How a command is asked for all of its flags, if its help is short."""
ASK = """
import contextlib, io, json, sys
from evergait.cli import main

texts = []
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code
    if code:
        sys.exit(code)
    texts.append(said.getvalue())
print(json.dumps(texts))
"""
STARTS = {"bash": ".bashrc", "zsh": ".zshrc"}
"""Files that a shell reads when it starts; fish finds its script by itself."""
LOAD = {
    "bash": "source '{path}'  # evergait's completion",
    "zsh": "autoload -Uz compinit bashcompinit && compinit && bashcompinit && source '{path}'  # evergait's completion",
}


@dataclass(frozen=True)
class Completion:
    """Print a script that completes commands, flags and names, or install it for this user."""

    shell: tyro.conf.Positional[Shell]
    """bash, zsh or fish."""
    install: bool = False
    """Write it to a file of yours, and let the shell read it when it starts."""

    def run(self) -> int:
        """Print or install."""
        flags, values = offered_flags(), offered_values()
        script = fish(flags, values) if self.shell == "fish" else bash(flags, values)
        if not self.install:
            console.out(script, highlight=False)
            return 0
        console.print(f"Wrote {install(self.shell, script)}; new shells complete `evergait`.", markup=False)
        return 0


def install(shell: Shell, script: str) -> Path:
    """Put the script where the shell finds it; a second time changes nothing."""
    home = Path.home()
    if shell == "fish":
        path = Path(os.environ.get("XDG_CONFIG_HOME", home / ".config")) / "fish/completions/evergait.fish"
    else:
        path = Path(os.environ.get("XDG_DATA_HOME", home / ".local/share")) / f"evergait/completion.{shell}"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, script.encode())
    if start := STARTS.get(shell):
        folder = Path(os.environ.get("ZDOTDIR") or home) if shell == "zsh" else home
        line, file = LOAD[shell].format(path=path), folder / start
        text = file.read_text() if file.exists() else ""
        if line not in text.splitlines():
            with file.open("a") as end:
                end.write(("" if text.endswith("\n") or not text else "\n") + line + "\n")
    return path


def offered_flags() -> dict[str, list[str]]:
    """Command → its flags, as the program's own help has them; `study` has commands of its own."""
    names = re.findall(r"^  (\w+) {2,}", printed(["--help"])[0], re.MULTILINE)
    asked = [[name] for name in names if name != "study"] + [["study", part] for part in STUDY]
    texts = printed(*([*command, HELP.get(command[0], "--help")] for command in asked))
    found: dict[str, set[str]] = {name: set() for name in names}
    for command, text in zip(asked, texts, strict=True):
        found[command[0]].update(re.findall(r"(?<![\w.-])--[a-z][\w.-]*", text))
    return {name: sorted(flags) for name, flags in found.items()}


def printed(*asked: Sequence[str]) -> list[str]:
    """What evergait prints for each, all in one process of its own: a command does not know the others."""
    command = [sys.executable, "-c", ASK, json.dumps(asked)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - ourselves
    texts: list[str] = json.loads(said)
    return texts


def offered_values() -> dict[str, list[str]]:
    """Flag → values that are known beforehand."""
    tasks = sorted(s.id for s in gymnasium.registry.values() if "mujoco" in str(s.entry_point) and s.version == 5)
    return {
        "--preset": sorted(presets()),
        "--method": sorted(Method.members),
        "--optimizer": sorted(Optimizer.members),
        "--workers": sorted(WorkersChoice.members),
        "--engine": ["auto", *available()],
        "--stream": tasks,
        "--task": tasks,
        "completion": ["bash", "zsh", "fish"],
        "study": list(STUDY),
    }


def bash(flags: Mapping[str, list[str]], values: Mapping[str, list[str]]) -> str:
    """For bash, and for zsh by its bashcompinit."""
    offers = "\n".join(f"    {flag}) words='{' '.join(names)}' ;;" for flag, names in values.items())
    own = "\n".join(f"    {name}) flags='{' '.join(found)}' ;;" for name, found in flags.items())
    return f"""\
_evergait() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words='' flags=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{" ".join(flags)} --help --version' -- "$current"))
    return
  fi
  case "$before" in
{offers}
  esac
  case "${{COMP_WORDS[1]}}" in
{own}
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
  esac
}}
complete -o default -F _evergait evergait
"""


def fish(flags: Mapping[str, list[str]], values: Mapping[str, list[str]]) -> str:
    """For fish."""
    lines = [f"complete -c evergait -n __fish_use_subcommand -f -a '{' '.join(flags)}'"]
    for name, found in flags.items():
        for flag in found:
            offered = f" -x -a '{' '.join(values[flag])}'" if flag in values else ""
            lines.append(f"complete -c evergait -n '__fish_seen_subcommand_from {name}' -l {flag[2:]}{offered}")
        if name in values:
            lines.append(f"complete -c evergait -n '__fish_seen_subcommand_from {name}' -a '{' '.join(values[name])}'")
    return "\n".join(lines) + "\n"

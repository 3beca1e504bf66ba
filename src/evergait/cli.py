"""The command line: find the command, parse, call, print. Mistakes of the user end in one sentence and exit code 2.

A command's module is imported when the command is used; `evergait --help` imports none.
"""

import importlib
import os
import select
import sys
from typing import Any

import evergait
from evergait.core.errors import EvergaitError, nearest
from evergait.core.terminal import guard_streams

COMMANDS = {
    "train": ("evergait.commands.train:Train", "Train one policy on a stream of tasks, or go on with it."),
    "study": ("evergait.commands.study:Study", "Train, plan or look at a whole study."),
    "tune": ("evergait.commands.tune:Tune", "Choose settings on one order with Optuna."),
    "show": ("evergait.commands.show:Show", "Show what a run learnt, kept and forgot."),
    "eval": ("evergait.commands.evaluate:Eval", "Evaluate the unperturbed policy of a run."),
    "play": ("evergait.commands.play:Play", "Show how a run's policy moves: a page, a GIF or an MP4."),
    "report": ("evergait.commands.report:Report", "Write one self-contained page about a study or a run."),
    "watch": ("evergait.commands.watch:Watch", "Follow trainings and studies on a local page."),
    "lab": ("evergait.commands.lab:Lab", "Write a page in which robots live and are trained."),
    "verify": ("evergait.commands.verify:Verify", "Play recorded evaluations again in plain Gymnasium."),
    "reproduce": ("evergait.commands.reproduce:Reproduce", "Train a published phase again and compare its bits."),
    "export": ("evergait.commands.export:Export", "Write a run's policy to one file."),
    "tasks": ("evergait.commands.inspect:Tasks", "List tasks, variants and named streams."),
    "methods": ("evergait.commands.inspect:Methods", "List methods, optimizers and workers with their options."),
    "zoo": ("evergait.commands.zoo:Zoo", "List trained policies, get one, share yours."),
    "bench": ("evergait.commands.bench:Bench", "Compare the engines' speed."),
    "doctor": ("evergait.commands.doctor:Doctor", "Check whether this machine is ready."),
    "completion": ("evergait.commands.completion:Completion", "Complete commands and flags in your shell."),
}
"""Name → where its class is, and what it does."""


def usage() -> str:
    """What `evergait --help` prints."""
    lines = [f"  {name:12}{what}" for name, (_, what) in COMMANDS.items()]
    return "\n".join(
        (
            "usage: evergait COMMAND ...",
            "",
            str(evergait.__doc__),
            "",
            *lines,
            "",
            "`evergait COMMAND --help` explains a command; `evergait --version` prints what is installed.",
            "Every command takes --import MODULE: your own methods, optimizers, engines and tasks.",
            "",
        )
    )


def find(name: str) -> Any:
    """The class of a command."""
    if name not in COMMANDS:
        raise EvergaitError(f"there is no command {name!r}{nearest(name, COMMANDS)}")
    module, _, member = COMMANDS[name][0].partition(":")
    return getattr(importlib.import_module(module), member)


def parse(arguments: list[str]) -> Any:
    """The command that the arguments spell."""
    from evergait.commands.base import Imports, parse_flags, split_flags

    name, *rest = arguments
    find(name)
    imports, rest = split_flags(Imports, rest)
    imports.run()
    require_once(rest)
    command = find(name)
    own = getattr(command, "from_arguments", None)
    return own(rest, imports.modules) if own else parse_flags(command, rest, name)


LISTS = (
    *("conditions", "engines", "healthy-bonus", "log", "only", "plugins", "policy.hidden", "score.reference"),
    *("stream", "task", "tasks"),
)
"""Flags that take several values: given twice, the first ones would be forgotten."""


def require_once(arguments: list[str]) -> None:
    """Refuse such a flag that is there twice."""
    words = [word.partition("=")[0] for word in arguments]
    for flag in (f"--{name}" for name in LISTS):
        if words.count(flag) > 1:
            raise EvergaitError(f"{flag}: is there twice; give all its values after one {flag}")


def main(arguments: list[str] | None = None) -> int:
    """Run one command."""
    as_program = arguments is None
    if as_program:
        guard_streams()
    arguments = sys.argv[1:] if arguments is None else arguments
    from evergait.core.signals import Stop, leave_undisturbed

    try:
        code = _run(arguments)
        sys.stdout.flush()  # what nobody reads is noticed here, and not when Python ends
        if as_program and code > 128:
            leave_undisturbed()
        return code
    except EvergaitError as error:
        return _complain(error)
    except Stop as stop:  # at a safe point
        sys.stderr.write("evergait: stopped; run the same command again to go on\n")
        return stop.exit_code
    except KeyboardInterrupt:  # where nothing was at stake
        sys.stderr.write("evergait: interrupted\n")
        return 130
    except OSError as error:
        is_pipe = isinstance(error, BrokenPipeError)
        if is_pipe and _nobody_reads():  # `evergait show | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still held back
            return 0
        unnamed = "a process that was to be told something has gone" if is_pipe else "a file"
        where = error.filename if isinstance(error.filename, str) else unnamed
        return _complain(f"{where}: {error.strerror or error}")
    except MemoryError:
        return _complain("there is not enough memory for this")


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        (sys.stdout if arguments else sys.stderr).write(usage())
        return 0 if arguments else 2
    if arguments == ["--version"]:
        from evergait.core.versions import in_words, versions

        sys.stdout.write(f"{in_words(versions())}\n")
        return 0
    code: int = parse(arguments).run()
    return code


def _nobody_reads() -> bool:
    """Whether the reader of standard output has gone; a flush would tell only if something were held back."""
    try:
        output = select.poll()
        output.register(sys.stdout, 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in output.poll(0))
    except (OSError, TypeError, ValueError):  # it is closed, or no file at all
        return False


def _complain(message: object) -> int:
    from evergait.commands.base import errors

    errors.print(f"evergait: {message}", style="red", markup=False, soft_wrap=True)
    return 2


if __name__ == "__main__":
    sys.exit(main())

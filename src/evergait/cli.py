"""The command line: parse, call, print. Mistakes of the user end in one clear sentence and exit code 2."""

import io
import sys
from typing import Annotated, Any

import tyro

import evergait
from evergait.commands.base import console, errors
from evergait.commands.bench import Bench
from evergait.commands.doctor import Doctor
from evergait.commands.evaluate import Eval
from evergait.commands.export import Export
from evergait.commands.inspect import Methods, Tasks
from evergait.commands.report import Play, Report
from evergait.commands.show import Show
from evergait.commands.study import Tune, study_command
from evergait.commands.train import Train, base_settings, base_workers
from evergait.commands.verify import Verify
from evergait.core.errors import EvergaitError
from evergait.core.signals import Stop, leave_undisturbed
from evergait.core.versions import in_words, versions

COMMANDS: tuple[type[Any], ...] = (Show, Eval, Verify, Export, Play, Report, Tune, Tasks, Methods, Bench, Doctor)


def parse(arguments: list[str]) -> Any:
    """The command that the arguments spell; `train` starts from its preset, file, method, optimizer and workers."""
    settings = base_settings(arguments if arguments[:1] == ["train"] else [])
    workers = base_workers(arguments if arguments[:1] == ["train"] or arguments[:2] == ["study", "run"] else [])
    default = Train(
        out=tyro.MISSING,
        settings=settings,
        chosen_method=settings.method.name,
        chosen_optimizer=settings.optimizer.name,
        chosen_workers=workers.name,
        workers=workers,
    )
    union: Any = Annotated[Train, tyro.conf.subcommand("train", default=default)]
    union |= Annotated[study_command(workers), tyro.conf.subcommand("study")]
    for command in COMMANDS:
        union |= Annotated[command, tyro.conf.subcommand(command.__name__.lower())]
    description = f"{evergait.__doc__} `evergait --version` prints what is installed."
    return tyro.cli(union, args=arguments, prog="evergait", description=description)


def main(arguments: list[str] | None = None) -> int:
    """Run one command."""
    for stream in (sys.stdout, sys.stderr):  # no name of a file and no terminal's encoding may stop a message
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    as_program = arguments is None
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if arguments == ["--version"]:
            console.print(in_words(versions()), soft_wrap=True)
            return 0
        command = parse(arguments)
        code: int = command.run()
        if as_program and code > 128:
            leave_undisturbed()
        return code
    except EvergaitError as error:
        errors.print(f"evergait: {error}", style="red", markup=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:  # before or after training, which stops at safe points by itself
        errors.print("evergait: interrupted")
        return 130
    except Stop as stop:  # the same, by SIGTERM
        errors.print("evergait: stopped; run the same command again to go on")
        return stop.exit_code
    except BrokenPipeError:  # `evergait show | head`
        sys.stderr.close()
        return 0
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else "a file"
        errors.print(f"evergait: {where}: {error.strerror or error}", style="red", markup=False, soft_wrap=True)
        return 2
    except MemoryError:
        errors.print("evergait: there is not enough memory for this", style="red")
        return 2


if __name__ == "__main__":
    sys.exit(main())

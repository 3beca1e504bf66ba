"""What the command line calls: a whole report, or one gait as a page, a GIF or an MP4."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from evergait.core.data import require
from evergait.core.errors import EvergaitError
from evergait.core.files import write_atomically
from evergait.core.names import nearest, short
from evergait.live.inside import alive
from evergait.paper.study import analyse
from evergait.report.film import film
from evergait.report.gait import Moment, Recorder, moments, recorder
from evergait.report.html import render_gait, render_report
from evergait.report.video import to_gif, to_mp4
from evergait.studies.results import Results
from evergait.training.run import Run

ENDINGS = (".html", ".gif", ".mp4")


def write_report(results: Results, output: Path, references: Mapping[str, float] | None = None) -> Path:
    """Write the report to `output`, or to report.html in it, and return its path. Gaits are kept in DIR/gaits."""
    path = output if output.suffix == ".html" and not output.is_dir() else output / "report.html"
    _make_folder(path.parent)
    page = render_report(analyse(results, references), results.path / "gaits", alive(results))
    _write(path, page.encode(errors="replace"))
    return path


def play(
    run: Run | str | Path,
    task: str = "",
    stage: int | None = None,
    generation: int | None = None,
    output: str | Path = "gait.html",
) -> Path:
    """One policy of a run on one task, as a page, a GIF or an MP4.

    By default the last task learnt, by the policy at the end of the last finished stage; stages count from 1.
    """
    path = Path(output)
    require(path.suffix in ENDINGS, "output", str(output), f"a name that ends in {', '.join(ENDINGS)}")
    run = run if isinstance(run, Run) else Run.load(run)
    if not run.phases:
        raise EvergaitError(f"{run.path}: has no finished phase yet, so there is no gait to show")
    task = task or run.ledgers[-1].learning[-1]
    known = run.ledgers[0].tasks
    if task not in known:
        raise EvergaitError(f"task: the run has no task {task!r}{nearest(task, known)}")
    moment = _moment(run, stage, generation)
    colour = list(dict.fromkeys([*(t for ledger in run.ledgers for t in ledger.learning), *known])).index(task)
    with closing(recorder(task, run.path / "gaits")) as one:
        content = _content(one, run, moment, colour, path.suffix)
    _make_folder(path.parent)
    _write(path, content)
    return path


def _content(one: Recorder, run: Run, moment: Moment, colour: int, ending: str) -> bytes:
    """The file that the ending asks for; a robot without a plane is filmed by MuJoCo's renderer."""
    robot = one.robot.describe()
    if ending == ".mp4":
        try:
            planar = robot["planar"]
            return to_mp4(robot, one.record(run, moment), colour) if planar else film(one, one.played(run, moment))
        except EvergaitError as error:
            raise EvergaitError(f"output: {error}; or choose .html or .gif, which are drawn from lines") from error
    gait = one.record(run, moment)
    if ending == ".gif":
        return to_gif(robot, gait, colour)
    label = f"after generation {moment.generation} of {' + '.join(map(short, run.ledgers[moment.stage].learning))}"
    return render_gait(one.robot.task.name, colour, label, run, robot, gait).encode(errors="replace")


def _moment(run: Run, stage: int | None, generation: int | None) -> Moment:
    kept = moments(run)
    n_stages = len(run.phases)
    wanted = n_stages if stage is None else stage
    require(1 <= wanted <= n_stages, "stage", wanted, f"from 1 to {n_stages}, the finished stages of this run")
    mine = [moment for moment in kept if moment.stage == wanted - 1]
    if generation is None:
        return mine[-1]
    found = [moment for moment in mine if moment.generation == generation]
    offered = ", ".join(str(moment.generation) for moment in mine)
    require(bool(found), "generation", generation, f"one whose policy was kept in stage {wanted}: {offered}")
    return found[0]


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvergaitError(f"output: {path} cannot be made a folder: {error.strerror}") from error


def _write(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, content)
    except OSError as error:
        raise EvergaitError(f"output: {path} cannot be written: {error.strerror}") from error

"""`evergait play`: one gait as a page, a GIF or an MP4."""

from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from evergait.commands.base import console, make_folder, write_output
from evergait.commands.flags import Which, select_run, tell_edited
from evergait.core.data import require
from evergait.core.errors import EvergaitError, nearest
from evergait.report.film import film
from evergait.report.gait import GaitRecorder, Moment, moments, recorder
from evergait.report.html import render_gait
from evergait.report.video import to_gif, to_mp4
from evergait.tasks.base import short
from evergait.training.run import Run
from evergait.zoo.catalogue import SHIPPED, pretrained

ENDINGS = (".html", ".gif", ".mp4")


@dataclass(frozen=True)
class Play:
    """Show how a run's policy moves: a page with a player, a GIF or an MP4."""

    folder: tyro.conf.Positional[Path | None] = None
    """Folder of a run or a study."""
    pretrained: str = ""
    """In place of a folder, a policy that ships, as `evergait zoo` lists them: hopper, swimmer, walker, cheetah, ..."""
    which: Annotated[Which, tyro.conf.arg(name="")] = field(default_factory=Which)
    task: str = ""
    """Task; the last one learnt if not given."""
    stage: int | None = None
    """After which phase of the stream, from 1; the last one finished if not given."""
    generation: int | None = None
    """One of the generations whose θ was kept; the phase's last if not given."""
    output: Path = Path("gait.html")
    """File to write; its ending (.html, .gif, .mp4) decides what it is."""

    def run(self) -> int:
        """Write the file."""
        right = "the folder of a run, or use --pretrained alone"
        require(bool(self.pretrained) != bool(self.folder), "folder", str(self.folder or ""), right)
        alone = self.folder or self.which == Which()
        require(bool(alone), "pretrained", self.pretrained, "without --condition, --order, --seed and --store")
        run = select_run(self.folder, self.which) if self.folder else pretrained(self.pretrained)
        tell_edited(run)
        path = play(run, self.task, self.stage, self.generation, self.output)
        console.print(f"Wrote {path}.", markup=False, soft_wrap=True)
        return 0


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
    with closing(recorder(task, None if run.path == SHIPPED else run.path / "gaits")) as one:
        content = _content(one, run, moment, colour, path.suffix)
    make_folder(path.parent)
    write_output(path, content)
    return path


def _content(one: GaitRecorder, run: Run, moment: Moment, colour: int, ending: str) -> bytes:
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
    why = " (on the way, statistics of observations are not kept)" if run.config.policy.normalise else ""
    require(bool(found), "generation", generation, f"one that can be played in stage {wanted}: {offered}{why}")
    return found[0]

"""A robot of one's own: an MJCF model and, in a few lines of TOML, what it is rewarded for. The file's path is a task.

    model = "crawler.xml"     # beside this file; its first joint slides along the way forward
    steps = 1000
    reward = { forward = 1.0, control = 0.1, healthy = 1.0 }
    healthy = { height = [0.7, 2.0], angle = [-0.2, 0.2] }

With `healthy`, an episode ends where the second joint (height), the third (angle) or anything behind the first two
(state) leaves its range. `function = "my_module:reward"` under `reward` is for what these words cannot say.
"""

import glob
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from evergait.core.data import from_data, require, to_data, to_toml, within
from evergait.core.errors import EvergaitError
from evergait.core.files import LIMIT, read_bytes, read_toml, sha256, write_atomically
from evergait.tasks.base import ENDING, Task

_MARKUP = re.compile(
    rb"""[^<]*+(?:
        <!--(?P<comment>.*?)-->|<\?.*?\?>|<!\[CDATA\[.*?]]>|<!(?!--|\[CDATA\[)[^>]*>
        |<(?![!?])(?P<tag>(?:[^"'>]|"[^"]*"|'[^']*')*+)>
    )""",
    re.DOTALL | re.VERBOSE,
)
"""The next piece of a file, cut where MuJoCo's own reader cuts it."""
_ATTRIBUTE = re.compile(rb"""(?<![^\s"'=])([^\s"'=]++)\s*+=\s*(?:"([^"]*)"|'([^']*)')""")
_REFERENCE = re.compile(rb"file\w*|\w+dir")
"""Attributes of MJCF that name a file, or a folder of files."""
LONGEST = 2**31 - 1
"""Steps of an episode: engines count them in 32 bits."""
MOST_NOISE = 1e6
"""Of a reset; nothing of a robot is as large, and noise beyond all numbers cannot be drawn."""


@dataclass(frozen=True)
class Reward:
    """What a step is worth: forward · speed + healthy (while it is) − control · Σ action²."""

    forward: float = 1.0
    control: float = 0.001
    healthy: float = 0.0
    function: str = ""
    """`module:name` of a Python function of (env, action, speed), in place of all this; then the engine is
    gymnasium."""


@dataclass(frozen=True)
class Healthy:
    """Ranges that end an episode where they are left; an empty one does not."""

    height: tuple[float, ...] = ()
    """Of the second joint's position."""
    angle: tuple[float, ...] = ()
    """Of the third joint's position."""
    state: tuple[float, ...] = ()
    """Of every position behind the second joint, and of every velocity."""


@dataclass(frozen=True)
class RobotFile:
    """A robot and its rules."""

    model: str
    """MJCF file, relative to this one."""
    steps: int = 1000
    """Time limit of an episode."""
    frame_skip: int = 4
    """MuJoCo steps per environment step."""
    hidden: int = 1
    """Leading joint positions that the policy does not see."""
    clip_velocity: bool = False
    """Whether the policy sees velocities cut to ±10."""
    reset_noise: float = 0.01
    """Initial positions and velocities are the model's, plus uniform noise up to this."""
    reward: Reward = field(default_factory=Reward)
    healthy: Healthy = field(default_factory=Healthy)

    @property
    def stays_upright(self) -> bool:
        """Whether an episode can end before its time."""
        return self.healthy != Healthy()

    def check(self) -> None:
        """Raise EvergaitError for settings that cannot work."""
        within(self.steps, 1, LONGEST, "steps")
        require(1 <= self.frame_skip <= 1000, "frame_skip", self.frame_skip, "from 1 to 1000")
        require(self.hidden >= 0, "hidden", self.hidden, "at least 0")
        right = f"from 0 to {MOST_NOISE:g}"
        require(0 <= self.reset_noise <= MOST_NOISE, "reset_noise", self.reset_noise, right)
        for name in ("height", "angle", "state"):
            bounds = getattr(self.healthy, name)
            right = "two numbers, the lower one first"
            require(not bounds or (len(bounds) == 2 and bounds[0] < bounds[1]), f"healthy.{name}", bounds, right)
        function = self.reward.function
        require(not function or function.count(":") == 1, "reward.function", function, "module:name")

    def save(self, path: str | Path) -> None:
        """Write the TOML file."""
        self.check()
        write_atomically(Path(path), to_toml(to_data(self)).encode())


def is_robot_file(task: Task) -> bool:
    """Whether a task is the path of such a file."""
    return task.id.endswith(ENDING)


def read_robot(task: Task) -> RobotFile:
    """The file that a task names; an error names it and the field."""
    path = Path(task.id)
    if not path.is_absolute() and not path.exists():
        raise EvergaitError(
            f"{task.id}: is missing or not a plain file: there is none in {Path.cwd()}, from where it is looked for"
        )
    try:
        robot = from_data(RobotFile, read_toml(path))
        robot.check()
    except EvergaitError as error:
        words = str(error)
        raise EvergaitError(words if task.id in words else f"{task.id}: {words}") from error
    if not model_path(task, robot).is_file():
        raise EvergaitError(f"{task.id}: model: there is no file {str(model_path(task, robot))!r}")
    model_files(task, robot)
    return robot


def model_path(task: Task, robot: RobotFile) -> Path:
    """Where the robot's MJCF is."""
    return (Path(task.id).parent / robot.model).absolute()


def model_files(task: Task, robot: RobotFile) -> dict[Path, bytes]:
    """The MJCF and all files that it names, and their content: meshes, textures, other MJCFs.

    MuJoCo opens whatever is named, be it a pipe or without end; so each must be a plain file below the robot's folder.
    """
    path = model_path(task, robot)
    contents: dict[Path, bytes] = {}
    waiting, seen, left = [path], {path}, LIMIT
    while waiting:
        file = waiting.pop()
        contents[file] = content = read_bytes(file, left)
        left -= len(content)
        for attribute, name, is_comment in _references(content):
            found = _below(path.parent, name)
            if not found and not is_comment:
                raise EvergaitError(f"{task.id}: model: names {name!r}; it must be a file below {path.parent}")
            if not attribute.endswith(b"dir"):
                waiting += [other for other in found if other not in seen]
                seen |= set(found)
    return contents


def _references(content: bytes) -> Iterator[tuple[bytes, str, bool]]:
    """Attribute, what it names, and whether that is in a comment, up to the first thing that is no markup."""
    place = 0
    while piece := _MARKUP.match(content, place):
        place = piece.end()
        for attribute, one, other in _ATTRIBUTE.findall(piece["comment"] or piece["tag"] or b""):
            if _REFERENCE.fullmatch(attribute) and (one or other):
                yield attribute, (one or other).decode(errors="replace"), piece["comment"] is not None


def _below(folder: Path, name: str) -> list[Path]:
    """Everything below a folder that a name may mean there; nothing if it may lead elsewhere."""
    where = Path(name)
    if where.is_absolute() or ".." in where.parts or "&" in name or "\\" in name:
        return []
    try:
        places = [sorted(folder.rglob(glob.escape(part))) for part in where.parts] or [[folder]]
    except OSError:  # too long for a name
        return []
    is_linked = any(place.is_symlink() for found in places for place in found)
    return [] if is_linked else places[-1]


SETTLED = 2 * 10**9
"""Nanoseconds: a file that was changed more recently may be changed again without looking changed, as clocks tick."""
_digests: dict[Path, tuple[dict[Path, tuple[int, ...]], str]] = {}
"""Robot file → how every file that was read looked, and the digest."""


def robot_digest(task: Task) -> str:
    """What decides the bits of its episodes: the rules, and the model's files; nothing for a task that is no such file.

    It is asked for many times in a generation, and meshes are large: files that look unchanged are not read again.
    """
    if not is_robot_file(task):
        return ""
    path = Path(task.id).absolute()
    looks, digest = _digests.get(path, ({}, ""))
    if not looks or any(_look(file) != look for file, look in looks.items()):
        robot = read_robot(task)
        files = model_files(task, robot)
        digest = sha256(to_toml(to_data(robot)).encode() + b"".join(files.values()))[:24]
        looks = {file: _look(file) for file in (path, *files)}
        if all(looks.values()) and time.time_ns() - max(looks.values())[0] > SETTLED:
            _digests[path] = looks, digest
    return digest


def robot_digests(tasks: Iterable[Task]) -> dict[str, str]:
    """The same of all robots of one's own among some tasks, by name."""
    return {task.name: robot_digest(task) for task in tasks if is_robot_file(task)}


def _look(file: Path) -> tuple[int, ...]:
    """What changes with a file's content, the time of its latest change first; nothing if it is gone."""
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_ctime_ns, found.st_mtime_ns, found.st_size, found.st_ino

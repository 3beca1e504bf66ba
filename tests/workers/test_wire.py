"""What travels to other machines, and what they refuse."""

import shutil
from pathlib import Path

import pytest
from small import tiny_request

from evergait.core.errors import EvergaitError
from evergait.workers.wire import pack_request, unpack_request

EXAMPLE = Path(__file__).parents[2] / "examples" / "robot"


def test_a_robots_files_must_be_the_same_on_every_machine(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    robot, model = tmp_path / "crawler.toml", tmp_path / "crawler.xml"
    request = tiny_request(str(robot), n_rows=2)
    sent = pack_request("planar", request)
    engine, episodes = unpack_request(sent)
    assert (engine, episodes.task) == ("planar", request.task)
    xml = model.read_text()
    model.write_text(xml.replace('gear="10"', 'gear="11"'))  # as a stale copy on another machine
    with pytest.raises(EvergaitError, match=r"crawler.toml: it or its model is another one on .* copy the files"):
        unpack_request(sent)
    model.write_text(xml)
    assert unpack_request(sent)[0] == "planar"
    robot.unlink()
    with pytest.raises(EvergaitError, match=r"crawler.toml: is missing .*a robot's files must be on every machine"):
        unpack_request(sent)


def test_other_tasks_travel_by_their_name() -> None:
    assert unpack_request(pack_request("planar", tiny_request("Hopper-v5", n_rows=2)))[1].task.id == "Hopper-v5"

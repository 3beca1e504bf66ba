"""What docs/scaling.md tells people to use is well-formed, and its commands are ones that evergait has."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evergait.cli import parse
from evergait.commands.study import Study, StudyRun
from evergait.commands.train import Train
from evergait.workers import Ray

ROOT = Path(__file__).parent.parent.parent
FILES = ("docs/scaling.md", "examples/slurm.sbatch", "examples/kuberay.yaml")


def commands(text: str) -> list[list[str]]:
    """The `evergait train` and `evergait study` commands in a text, as words."""
    found = re.findall(r"(?<![`\w/-])evergait ((?:train|study run) [^`\n]+)", text)
    values = {"$head:$port": "head:1", "${@:-paper}": "paper"}
    for name, value in values.items():
        found = [command.replace(name, value) for command in found]
    return [shlex.split(re.sub(r"\$\w+", "1", command).rstrip(" &")) for command in found]


@pytest.mark.parametrize("name", FILES)
def test_commands_are_understood(name: str) -> None:
    found = commands((ROOT / name).read_text())
    assert found
    for words in found:
        command = parse(words)
        action = command.action if isinstance(command, Study) else command
        assert isinstance(action, Train | StudyRun)
        assert isinstance(action.workers, Ray) or "local" in words
        action.workers.check()


def test_the_batch_script_is_a_script() -> None:
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("no bash")
    subprocess.run([bash, "-n", ROOT / "examples/slurm.sbatch"], check=True)


def test_the_manifest_is_a_cluster_that_asks_for_a_token() -> None:
    yaml: Any = pytest.importorskip("yaml")
    claim, cluster = yaml.safe_load_all((ROOT / "examples/kuberay.yaml").read_text())
    assert (claim["kind"], claim["apiVersion"]) == ("PersistentVolumeClaim", "v1")
    assert (cluster["kind"], cluster["apiVersion"]) == ("RayCluster", "ray.io/v1")
    head, (group,) = cluster["spec"]["headGroupSpec"], cluster["spec"]["workerGroupSpecs"]
    assert head["rayStartParams"]["dashboard-host"] == "127.0.0.1"
    assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    images = set()
    for part in (head, group):
        assert all(isinstance(value, str) for value in part["rayStartParams"].values())  # KubeRay takes strings only
        (container,) = part["template"]["spec"]["containers"]
        images.add(container["image"])
        environment = {entry["name"]: entry for entry in container["env"]}
        assert environment["RAY_AUTH_MODE"]["value"] == "token"
        assert environment["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"] == {"name": "evergait-token", "key": "token"}
        assert container["resources"]["requests"] == container["resources"]["limits"]
    assert len(images) == 1  # versions must be the same everywhere
    (volume,) = head["template"]["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]

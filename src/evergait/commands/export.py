"""`evergait export`: a run's policy as one file."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from evergait.commands.base import console
from evergait.commands.selection import Which, select_run
from evergait.core.data import require
from evergait.core.errors import EvergaitError
from evergait.policy.export import export_policy


@dataclass(frozen=True)
class Export:
    """Write a run's policy to one .safetensors file with its layout in the header."""

    folder: tyro.conf.Positional[Path]
    """Folder of a run or a study."""
    which: Annotated[Which, tyro.conf.arg(name="")] = field(default_factory=Which)
    output: Path = Path("policy.safetensors")
    """File to write."""
    stage: int = 0
    """After which phase of the stream, from 1; 0 is the last one finished."""

    def run(self) -> int:
        """Write the file."""
        run = select_run(self.folder, self.which)
        require(0 <= self.stage <= len(run.phases), "stage", self.stage, f"from 0 to {len(run.phases)}")
        state = run.state(self.stage - 1)
        try:
            export_policy(self.output, run.policy, state.theta, state.statistics)
        except OSError as error:
            raise EvergaitError(f"output: {self.output} cannot be written: {error.strerror}") from error
        console.print(f"Wrote {self.output} ({run.policy.n_parameters:,} parameters).", markup=False)
        return 0

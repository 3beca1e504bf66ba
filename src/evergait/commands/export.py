"""`evergait export`: a run's policy as one file, or the evaluations of a run or study as a table."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro

from evergait.commands.base import console
from evergait.commands.flags import Which, select_run, tell_edited
from evergait.core.data import require
from evergait.core.errors import EvergaitError
from evergait.policy.layout import export_policy
from evergait.studies.folder import load_results


@dataclass(frozen=True)
class Export:
    """Write a run's policy to one .safetensors file with its layout in the header, or evaluations as a table."""

    folder: tyro.conf.Positional[Path]
    """Folder of a run or a study."""
    which: Annotated[Which, tyro.conf.arg(name="")] = field(default_factory=Which)
    output: Path = Path("policy.safetensors")
    """File to write."""
    stage: int = 0
    """After which phase of the stream, from 1; 0 is the last one finished."""
    csv: Path | None = None
    """File for all evaluations of a run or a study, in place of the policy: a row per episode."""
    parquet: Path | None = None
    """The same as a Parquet file, which needs pyarrow (the extra `frame`)."""

    def run(self) -> int:
        """Write the file."""
        if self.csv or self.parquet:
            return self.write_table()
        run = select_run(self.folder, self.which)
        tell_edited(run)
        require(0 <= self.stage <= len(run.phases), "stage", self.stage, f"from 0 to {len(run.phases)}")
        state = run.state(self.stage - 1)
        try:
            export_policy(self.output, run.policy, state.theta, state.statistics)
        except OSError as error:
            raise EvergaitError(f"output: {self.output} cannot be written: {error.strerror}") from error
        console.print(f"Wrote {self.output} ({run.policy.n_parameters:,} parameters).", markup=False)
        return 0

    def write_table(self) -> int:
        """Write the evaluations."""
        results = load_results(self.folder, self.which.store)
        frame = replace(results, entries=tuple(self.which.entries(results))).frame()
        tables = (("parquet", self.parquet, frame.write_parquet), ("csv", self.csv, frame.write_csv))
        for name, path, write in tables:  # pyarrow may be missing, so the one that needs it comes first
            if path is None:
                continue
            try:
                write(path)
            except OSError as error:
                raise EvergaitError(f"{name}: {path} cannot be written: {error.strerror}") from error
            console.print(f"Wrote {path} ({frame.n_rows:,} rows).", markup=False)
        return 0

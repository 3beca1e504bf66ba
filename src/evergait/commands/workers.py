"""The flag that chooses workers, which `train` and `study run` share."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from evergait.workers import WorkersChoice


@dataclass(frozen=True)
class WorkersKind:
    """Where episodes are simulated."""

    workers: Annotated[str, tyro.conf.arg(metavar="|".join(WorkersChoice.members))] = "local"
    """Where episodes are simulated; its options appear as --workers.*. The result does not depend on it."""

    def choice(self) -> WorkersChoice:
        """The workers of that kind, with their defaults."""
        return WorkersChoice.named(self.workers, "workers")()

"""Workers carry episodes to engines and bring outcomes back in row order."""

from typing import ClassVar, Protocol, runtime_checkable

from evergait.engines import Episodes, Outcome


@runtime_checkable
class Workers(Protocol):
    """Where engines run."""

    name: ClassVar[str]
    n_threads: int

    def run(self, engine: str, episodes: Episodes) -> Outcome:
        """Simulate every row on the named engine; the outcome is in row order whoever computed it."""
        ...

    def close(self) -> None:
        """Stop everything that was started."""
        ...

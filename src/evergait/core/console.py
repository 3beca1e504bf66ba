"""Rich's console, on which text from files is text: no markup, no emoji, no escape sequences."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from evergait.core.terminal import inert


class Screen(Console):
    """Everything that is printed comes through `render`, its own colours as controls and styles beside the text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"highlight": False, "markup": False, "emoji": False, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich does, with inert text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(inert(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """What a command does about it, the command line decides; rich would end the program with exit code 1."""
        raise  # rich calls this where it has caught the error

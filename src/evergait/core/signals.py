"""Ctrl-C, SIGTERM and a terminal that was closed: take effect only where nothing can be lost.

Saving inside a signal handler hangs or tears files; so a handler raises only inside `interruptible()`, where a
generation is being simulated and may be thrown away, and is otherwise remembered until the next such place.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop(BaseException):
    """The user or the system asks the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class Interrupt(Stop, KeyboardInterrupt):
    """Ctrl-C, which Python and notebooks know as KeyboardInterrupt."""


def _stop(number: int) -> Stop:
    return Interrupt(number) if number == signal.SIGINT else Stop(number)


class _Pending:
    number: int = 0
    may_raise: bool = False


_pending = _Pending()


def _handle(number: int, frame: FrameType | None) -> None:
    _pending.number = number
    if _pending.may_raise:
        _pending.may_raise = False
        raise _stop(number)  # where Python ignores exceptions, as in a finalizer, it surfaces at the next place


@contextlib.contextmanager
def stop_at_safe_points() -> Iterator[None]:
    """Within this context, signals surface as `Stop` from `interruptible()`; does nothing outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # What was ignored before, as SIGHUP is under nohup, stays so.
    before = {
        number: signal.signal(number, _handle) for number in HANDLED if signal.getsignal(number) != signal.SIG_IGN
    }
    complain = sys.unraisablehook
    sys.unraisablehook = lambda lost: None if isinstance(lost.exc_value, Stop) else complain(lost)
    try:
        yield
        if _pending.number:  # it came after the last place where it could surface
            raise _stop(_pending.number)
    finally:
        _pending.number = 0
        sys.unraisablehook = complain
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_undisturbed() -> None:
    """For a program that was stopped and only has to exit: a further signal must not change its exit code."""
    for number in HANDLED:
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """A place where work may be abandoned."""
    if _pending.number:
        raise _stop(_pending.number)
    _pending.may_raise = True
    try:
        yield
    except Stop:
        _pending.number = 0
        raise
    finally:
        _pending.may_raise = False

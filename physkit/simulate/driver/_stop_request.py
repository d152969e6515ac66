"""Reasons to stop early that leave a usable result: signals and the wall clock."""

import contextlib
import math
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from physkit.core import ParameterError
from physkit.parallel import ProcessGroup, single_process

from ..distributed._consensus import first_answer

# SIGHUP: the terminal or the connection is gone, which may take hours of work with it.
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")


@contextlib.contextmanager
def ending_at_once() -> Iterator[None]:
    """Within it signals end the program, also during runs: for programs whose runs leave nothing to keep."""
    previous: dict[int, object] = {}
    if threading.current_thread() is threading.main_thread():
        for name in _SIGNALS[:-1]:  # a SIGUSR1 asks for a checkpoint and no more
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                previous[number] = signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)  # as shells say it


class StopRequest:
    """While active, turns the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 into a request to stop after the chunk.

    A second SIGINT interrupts at once. Signals that are ignored stay so, as SIGHUP under `nohup`, and
    so do those that end the program (`ending_at_once`). Outside the main thread signals are left alone.

    A process that waits for others of its job, which do not come, ends at a second signal, or five minutes
    after the first.

    **Errors:** `ParameterError` for a `wall_time` that is not a number: no time is later.
    """

    def __init__(self, wall_time: float | None = None, process_group: ProcessGroup | None = None):
        if wall_time is not None and math.isnan(wall_time):
            raise ParameterError(f"wall_time is a number of seconds, or None; got {wall_time}")
        self.reason: str | None = None
        self._process_group = single_process() if process_group is None else process_group
        self._waiting = contextlib.ExitStack()
        self._deadline = None if wall_time is None else time.monotonic() + wall_time
        self._previous: dict[int, object] = {}

    def __enter__(self) -> "StopRequest":
        # Python lets only the main thread set handlers.
        if threading.current_thread() is threading.main_thread():
            for name in _SIGNALS:
                number = getattr(signal, name, None)
                # Windows has neither SIGHUP nor SIGUSR1. A handler that is not Python's, None, could not be put
                # back: faulthandler's.
                if number is not None and signal.getsignal(number) not in (
                    None,
                    signal.SIG_IGN,
                    _end,
                ):
                    self._previous[number] = signal.signal(number, self._request_stop)
            self.join(self._process_group)
        return self

    def join(self, process_group: ProcessGroup) -> None:
        """Stop together with these processes, from now on."""
        self._process_group = process_group
        if self._previous:
            self._waiting.enter_context(process_group.stopping_by(self._previous))

    def __exit__(self, *_: object) -> None:
        self._waiting.close()
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def check(self, next_chunk: float | None) -> str | None:
        """Why to stop now, if the next chunk takes about `next_chunk` seconds; None to continue.

        What stops one process of a job stops all. Without `next_chunk` the wall clock does not count.
        """
        # A chunk cannot be interrupted: stop before one that would end after the limit.
        has_limit = next_chunk is not None and self._deadline is not None
        if self.reason is None and has_limit and time.monotonic() + next_chunk > self._deadline:
            self.reason = "wall time"
        self.reason = first_answer(self._process_group, self.reason, "whether to stop")
        return self.reason

    def _request_stop(self, number: int, frame: FrameType | None) -> None:
        del frame
        # A handler runs between two lines of Python, anywhere: it only takes a note. The second Ctrl-C is
        # impatience.
        if self.reason is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.reason = signal.Signals(number).name

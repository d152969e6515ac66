"""The control channel between the processes of a job: liveness, failures, and small agreements.

A TCP connection from every process to process 0, beside those that JAX makes. A process that is killed
closes its end at once, so that the others know within a second, where collectives would wait for ever.
"""

import contextlib
import json
import os
import queue
import selectors
import socket
import sys
import threading
import time
from typing import Any

from physkit.core import EXIT_TRY_AGAIN, ClusterError

from ._messages import Message, send_message

HEARTBEAT_INTERVAL = 1.0  # seconds
EXIT_FAILED = 1
GRACE_PERIOD = 0.5  # seconds for a process to end by its own error before it is ended for another's


class ControlChannel:
    """One process's end of the channel. Process 0 is connected to each of the others, they are to it.

    A watcher thread sends and receives heartbeats; when another process dies or falls silent, it reports
    that on stderr and ends this one.

    **Arguments:**

    - `process_index`: which process this is.
    - `connections`: by process index.
    - `names`: of all processes, for messages.
    - `silence`: seconds without a heartbeat after which a process counts as lost.
    """

    def __init__(
        self,
        process_index: int,
        connections: dict[int, socket.socket],
        names: list[str],
        silence: float,
    ):
        self.process_index, self.names, self._silence = process_index, names, silence
        self._connections = connections
        self._send_locks = {k: threading.Lock() for k in connections}
        self._last_heard = dict.fromkeys(connections, time.monotonic())
        self._buffers: dict[int, bytearray] = {k: bytearray() for k in connections}
        self._gathered: dict[int, queue.Queue] = {k: queue.Queue() for k in connections}
        self._departed: set[int] = set()
        self._round = 0
        self.is_ending = self._has_failed = self._is_closed = False
        self._watcher = threading.Thread(
            target=self._watch, name="physkit-control-channel", daemon=True
        )
        self._watcher.start()

    @property
    def process_count(self) -> int:
        """How many processes there are."""
        return len(self.names)

    def all_gather_object(self, value: Any, what: str) -> list[Any]:
        """Gather the `value` of each process, in their order. Every process must call it, for the same `what`.

        **Errors:** `ClusterError` if another process is at another place of the program.
        """
        self._round += 1
        mark = [self._round, what]
        if self.process_index:
            self._send(0, {"kind": "gather", "mark": mark, "value": value})
            return self._take(0, mark)
        values = [value, *(self._take(k, mark) for k in sorted(self._connections))]
        for k in self._connections:
            self._send(k, {"kind": "gather", "mark": mark, "value": values})
        return values

    def report_failure(self, reason: str) -> None:
        """Tell all that this process ends with an error, and give them the time to end before it."""
        time.sleep(GRACE_PERIOD / 2)
        if self.is_ending:
            # This error is a consequence of another process's end: the watcher knows whose, and reports it.
            self._watcher.join()
        self._has_failed = True
        for k in self._connections:
            self._send(
                k, {"kind": "failed", "process": self.process_index, "reason": reason[:2000]}
            )
        deadline = time.monotonic() + (4 if self.process_index == 0 else 1) * GRACE_PERIOD
        while len(self._departed) < len(self._connections) and time.monotonic() < deadline:
            time.sleep(GRACE_PERIOD / 20)

    def close(self) -> None:
        """Say that this process ends as it should."""
        for k in self._connections:
            self._send(k, {"kind": "bye"})
        self._is_closed = True

    def _take(self, k: int, mark: list[Any]) -> Any:
        message = self._gathered[k].get()
        if message["mark"] != mark:
            raise ClusterError(
                f"the processes have come apart: {self.names[self.process_index]} is at {mark[1]!r}, "
                f"{self.names[k]} at {message['mark'][1]!r}. All must run the same script on the same "
                "input, and take the same branches"
            )
        return message["value"]

    def _send(self, k: int, message: Message) -> None:
        # A connection that is closed is the watcher's to report: it knows why.
        with contextlib.suppress(OSError), self._send_locks[k]:
            send_message(self._connections[k], message)

    # --- the watcher thread ---------------------------------------------------------------------

    def _watch(self) -> None:
        with selectors.DefaultSelector() as selector:
            for k, connection in self._connections.items():
                selector.register(connection, selectors.EVENT_READ, k)
            last_heartbeat = 0.0
            while not (self._is_closed and len(self._departed) == len(self._connections)):
                for key, _ in selector.select(HEARTBEAT_INTERVAL / 4):
                    if not self._read(key.data):
                        selector.unregister(key.fileobj)
                now = time.monotonic()
                if now - last_heartbeat >= HEARTBEAT_INTERVAL:
                    last_heartbeat = now
                    for k in self._connections.keys() - self._departed:
                        self._send(k, {"kind": "heartbeat"})
                for k in self._connections.keys() - self._departed:
                    if now - self._last_heard[k] > self._silence:
                        reason = f"{self.names[k]} has been silent for {self._silence:.0f} s"
                        self._end_process(reason, EXIT_TRY_AGAIN)
        for connection in self._connections.values():
            connection.close()

    def _read(self, k: int) -> bool:
        """Read what has arrived from process `k`; False if nothing more will come."""
        try:
            piece = self._connections[k].recv(2**16)
        except OSError:
            piece = b""
        if not piece:
            if self._has_failed:
                self._departed.add(k)
            elif k not in self._departed:
                reason = f"{self.names[k]} is gone: it was killed, or its machine is lost"
                self._end_process(reason, EXIT_TRY_AGAIN)
            return False
        self._last_heard[k] = time.monotonic()
        self._buffers[k] += piece
        *lines, rest = self._buffers[k].split(b"\n")
        self._buffers[k] = rest
        for line in lines:
            self._handle(k, json.loads(line))
        return k not in self._departed

    def _handle(self, k: int, message: Message) -> None:
        kind = message["kind"]
        if kind == "gather":
            self._gathered[k].put(message)
        elif kind == "bye":
            self._departed.add(k)
        elif kind == "failed" and not self._has_failed:
            reason = f"{self.names[message['process']]} failed: {message['reason']}"
            self._end_process(reason, EXIT_FAILED, k)
        elif kind == "lost" and not self._has_failed:
            self._end_process(message["reason"], message["status"], k)

    def _end_process(self, reason: str, status: int, reported_by: int | None = None) -> None:
        """End this process, and tell those who are connected to process 0 alone."""
        self.is_ending = True
        remaining = self._connections.keys() - self._departed - {reported_by}
        for k in remaining:
            self._send(k, {"kind": "lost", "reason": reason, "status": status})
        if status == EXIT_FAILED:
            time.sleep(GRACE_PERIOD)  # it may be about to end by the same error, and say more of it
        advice = (
            "; start it again, and it resumes from its last checkpoint"
            if status == EXIT_TRY_AGAIN
            else ""
        )
        sys.stderr.write(
            f"physkit: {self.names[self.process_index]} ends, because {reason}. The job cannot go on "
            f"without it{advice}\n"
        )
        sys.stderr.flush()
        if self.process_index == 0:
            # Process 0 goes last: it hosts JAX's coordinator, and JAX aborts processes that lose it.
            self._wait_until_closed(remaining)
        os._exit(status)

    def _wait_until_closed(self, remaining: set[int]) -> None:
        deadline = time.monotonic() + 4 * GRACE_PERIOD
        for k in remaining:
            with contextlib.suppress(OSError):
                self._connections[k].settimeout(max(0.01, deadline - time.monotonic()))
                while self._connections[k].recv(2**16):
                    pass

"""The control channel between the processes of a job: liveness, failures, and small agreements.

Every process has a TCP connection to process 0, beside the connections that JAX makes. The operating system
closes the connection of a killed process at once, so the others know within a second. JAX's collectives
would wait for it forever.
"""

import contextlib
import json
import os
import queue
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

from physkit.core import EXIT_TRY_AGAIN, ClusterError

from ._messages import JsonValue, Message, send_message

HEARTBEAT_INTERVAL = 1.0  # seconds
EXIT_FAILED = 1
# Seconds for a process to end by its own error before it is ended for another's. SPMD programs fail
# everywhere at once, and each process's own traceback says more than "another one failed".
GRACE_PERIOD = 0.5
# Seconds that a process which was told to stop may still be waiting for the others, and after which a second
# signal ends it: launchers often send the first one twice.
STOP_PATIENCE = 300.0
SECOND_SIGNAL_AFTER = 1.0


class ControlChannel:
    """One process's end of the channel, in the shape of a star: process 0 is connected to all others.

    A watcher thread sends and receives heartbeats. When another process dies or falls silent, the watcher
    writes that to stderr and ends this process.

    **Arguments:**

    - `process_index`: which process this is, counted from 0.
    - `connections`: open sockets by process index: one per other process on process 0, else one to it.
    - `names`: names of all processes, for messages.
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
        # The watcher's heartbeats and the main thread's messages share a socket: a lock keeps lines whole.
        self._send_locks = {k: threading.Lock() for k in connections}
        self._last_heard = dict.fromkeys(connections, time.monotonic())
        self._buffers: dict[int, bytearray] = {k: bytearray() for k in connections}
        # Filled by the watcher thread, emptied by the main thread.
        self._gathered: dict[int, queue.Queue] = {k: queue.Queue() for k in connections}
        # Processes that said goodbye: their silence is no failure, nor is the end of their connection.
        self._departed: set[int] = set()
        # Connections that the other end has not closed. A process that said goodbye waits in JAX's shutdown for
        # all others, and needs their heartbeats and their failures until then.
        self._open = set(connections)
        self._num_gathers = 0
        # Python writes the number of each signal here as it arrives, also while the main thread is blocked in a
        # collective, where no handler of Python's runs.
        self._signal_reader, self._signal_writer = socket.socketpair()
        self._signal_reader.setblocking(False)
        self._signal_writer.setblocking(False)
        self._watched_signals: frozenset[int] = frozenset()
        self._stop_signaled: float | None = None  # when the first of them came
        self.is_ending = self._has_failed = self._is_closed = False
        # A daemon: it must not keep a process alive whose main thread has ended.
        self._watcher = threading.Thread(
            target=self._watch, name="physkit-control-channel", daemon=True
        )
        self._watcher.start()

    @property
    def process_count(self) -> int:
        """How many processes there are."""
        return len(self.names)

    def all_gather_object(self, value: JsonValue, what: str) -> list[Any]:
        """Gather the `value` of each process, in the order of processes, on every process.

        Every process must call it, in the same order and for the same `what`.

        **Errors:** `ClusterError` if another process is at another place of the program.
        """
        self._num_gathers += 1
        # The number tells two gathers for the same `what` from each other.
        gather_id = [self._num_gathers, what]
        if self.process_index:
            self._send(0, {"kind": "gather", "id": gather_id, "value": value})
            return self._wait_for_value(0, gather_id)
        values = [value, *(self._wait_for_value(k, gather_id) for k in sorted(self._connections))]
        for k in self._connections:
            self._send(k, {"kind": "gather", "id": gather_id, "value": values})
        return values

    def report_failure(self, reason: str) -> None:
        """Tell all processes that this one ends with an error, and give them the time to end first."""
        time.sleep(GRACE_PERIOD / 2)
        if self.is_ending:
            # This error is a consequence of another process's end. The watcher knows which one: it reports
            # that and ends this process, so that `join` does not return.
            self._watcher.join()
        self._has_failed = True
        for k in self._connections:
            self._send(
                k, {"kind": "failed", "process": self.process_index, "reason": reason[:2000]}
            )
        # Process 0 waits longest: it hosts JAX's coordinator, and JAX aborts processes that lose it.
        deadline = time.monotonic() + (4 if self.process_index == 0 else 1) * GRACE_PERIOD
        while self._open and time.monotonic() < deadline:
            time.sleep(GRACE_PERIOD / 20)

    @contextlib.contextmanager
    def stopping_by(self, signals: Iterable[int]) -> Iterator[None]:
        """While inside, these signals end this process where it does not stop by itself; main thread only.

        That is at a second one, or `STOP_PATIENCE` seconds after the first: it waits for processes that do not
        come, and no handler of Python's could end that.
        """
        self._watched_signals, self._stop_signaled = frozenset(signals), None
        before = signal.set_wakeup_fd(self._signal_writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            self._watched_signals = frozenset()
            signal.set_wakeup_fd(before)

    def close(self) -> None:
        """Tell the others that this process ends as it should."""
        for k in self._connections:
            self._send(k, {"kind": "bye"})
        self._is_closed = True

    def _wait_for_value(self, k: int, gather_id: list[Any]) -> Any:
        # No timeout: if process `k` dies meanwhile, the watcher ends this process.
        message = self._gathered[k].get()
        if message["kind"] == "bye":
            # Put back for a caller that goes on after the error, and asks again.
            self._gathered[k].put(message)
            raise ClusterError(
                f"{self.names[k]} has ended its script, {self.names[self.process_index]} is at "
                f"{gather_id[1]!r} and waits for it. All must run the same script to its end: one that ends "
                "earlier must raise an error, not call sys.exit()"
            )
        if message["id"] != gather_id:
            raise ClusterError(
                f"the processes are out of step: {self.names[self.process_index]} is at {gather_id[1]!r}, "
                f"{self.names[k]} at {message['id'][1]!r}. All must run the same script on the same "
                "input, and take the same branches"
            )
        return message["value"]

    def _send(self, k: int, message: Message) -> None:
        # Closed connections are left to the watcher, which knows why they are closed.
        with contextlib.suppress(OSError), self._send_locks[k]:
            send_message(self._connections[k], message)

    # --- the watcher thread ---------------------------------------------------------------------

    def _watch(self) -> None:
        # One selector for all sockets: process 0 would otherwise need a thread per process.
        with selectors.DefaultSelector() as selector:
            for k, connection in self._connections.items():
                selector.register(connection, selectors.EVENT_READ, k)
            selector.register(self._signal_reader, selectors.EVENT_READ, None)
            last_heartbeat = 0.0
            while not self._is_over():
                for key, _ in selector.select(HEARTBEAT_INTERVAL / 4):
                    if key.data is None:
                        self._read_signals()
                    elif not self._read(key.data):
                        selector.unregister(key.fileobj)
                self._check_patience()
                # Heartbeats find what closes no connection: a stopped process, or a network that is cut.
                now = time.monotonic()
                if now - last_heartbeat >= HEARTBEAT_INTERVAL:
                    last_heartbeat = now
                    for k in self._open:
                        self._send(k, {"kind": "heartbeat"})
                for k in self._open - self._departed:
                    if now - self._last_heard[k] > self._silence:
                        reason = f"{self.names[k]} has been silent for {self._silence:.0f} s"
                        self._end_process(reason, EXIT_TRY_AGAIN)
        sockets = (*self._connections.values(), self._signal_reader, self._signal_writer)
        for each in sockets:
            each.close()

    def _is_over(self) -> bool:
        """Whether nothing more can come: process 0 closes when all have said goodbye, the others after it."""
        everybody_left = self.process_index == 0 and len(self._departed) == len(self._connections)
        return self._is_closed and (everybody_left or not self._open)

    def _read_signals(self) -> None:
        now = time.monotonic()
        for number in self._signal_reader.recv(4096):
            if number not in self._watched_signals:
                continue
            if self._stop_signaled is None:
                self._stop_signaled = now
            elif now - self._stop_signaled > SECOND_SIGNAL_AFTER:
                self._end_waiting(f"it was told twice to stop, by {signal.Signals(number).name}")

    def _check_patience(self) -> None:
        if not self._watched_signals or self._stop_signaled is None:
            return
        if time.monotonic() - self._stop_signaled > STOP_PATIENCE:
            self._end_waiting(f"{STOP_PATIENCE:.0f} s after a signal to stop it still waits")

    def _end_waiting(self, reason: str) -> None:
        self._end_process(f"{reason}: the others did not come to where it waits", EXIT_TRY_AGAIN)

    def _read(self, k: int) -> bool:
        """Read what has arrived from process `k`; False if nothing more will come."""
        try:
            received = self._connections[k].recv(2**16)
        except OSError:
            received = b""
        if not received:
            self._open.discard(k)
            # After this process's own failure the others close because of it: that is no second failure.
            if not self._has_failed and k not in self._departed:
                reason = f"{self.names[k]} is gone: it was killed, or its machine is lost"
                self._end_process(reason, EXIT_TRY_AGAIN)
            return False
        self._last_heard[k] = time.monotonic()
        self._buffers[k] += received
        # TCP keeps no message boundaries: the last line may still be incomplete.
        *lines, rest = self._buffers[k].split(b"\n")
        self._buffers[k] = rest
        for line in lines:
            self._handle(k, json.loads(line))
        return True

    def _handle(self, k: int, message: Message) -> None:
        kind = message["kind"]
        if kind == "gather":
            self._gathered[k].put(message)
        elif kind == "bye":
            self._departed.add(k)
            self._gathered[k].put(message)
        elif kind == "failed" and not self._has_failed:
            reason = f"{self.names[message['process']]} failed: {message['reason']}"
            self._end_process(reason, EXIT_FAILED, k)
        elif kind == "lost" and not self._has_failed:
            self._end_process(message["reason"], message["status"], k)

    def _end_process(self, reason: str, status: int, reported_by: int | None = None) -> None:
        """End this process, after telling those at the other ends: process 0 passes it on to all others."""
        self.is_ending = True
        remaining = self._open - {reported_by}
        for k in remaining:
            self._send(k, {"kind": "lost", "reason": reason, "status": status})
        if status == EXIT_FAILED:
            time.sleep(
                GRACE_PERIOD
            )  # it may be about to end by the same error, with its own traceback
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
        # Not `sys.exit`: this is not the main thread, which may be blocked in a collective for good.
        os._exit(status)

    def _wait_until_closed(self, remaining: set[int]) -> None:
        deadline = time.monotonic() + 4 * GRACE_PERIOD
        for k in remaining:
            with contextlib.suppress(OSError):
                self._connections[k].settimeout(max(0.01, deadline - time.monotonic()))
                while self._connections[k].recv(2**16):
                    pass

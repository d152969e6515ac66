"""The line between the processes of a job: who is there, who has died, and what all of them say.

A TCP connection from every process to process 0, apart from those that JAX makes. A process that is
killed closes its end at once, so that the others know within a second, where collectives would wait
for ever. What travels are lines of JSON.
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
from collections.abc import Callable
from typing import Any

from physkit.core import EXIT_TRY_AGAIN, ClusterError

HEARTBEAT_INTERVAL = 1.0  # seconds between signs of life
GRACE_PERIOD = 0.5  # for a process to end by its own error before it is ended for another's
_MOST = 2**24  # bytes of a message
_WORD = "physkit-line-1"
FAILED = 1  # exit status of what another start would not mend


class ControlChannel:
    """One process's end. Process 0 has a connection to each of the others, they have one to it.

    A thread of its own sends and hears signs of life; when another process dies or falls silent, it
    says so on stderr and ends this one.
    """

    def __init__(
        self, process: int, ends: dict[int, socket.socket], names: list[str], silence: float
    ):
        self.process, self.names, self._silence = process, names, silence
        self._ends, self._locks = ends, {k: threading.Lock() for k in ends}
        self._heard = dict.fromkeys(ends, time.monotonic())
        self._parts: dict[int, bytearray] = {k: bytearray() for k in ends}
        self._said: dict[int, queue.Queue] = {k: queue.Queue() for k in ends}
        self._gone: set[int] = set()
        self._round = 0
        self.ending = self._leaving = self._over = False
        self._thread = threading.Thread(target=self._watch, name="physkit-line", daemon=True)
        self._thread.start()

    @property
    def processes(self) -> int:
        """How many there are in all."""
        return len(self.names)

    def all_gather_object(self, value: Any, what: str) -> list[Any]:
        """What each process says, in their order. Every process must ask, and for the same thing.

        **Errors:** `ClusterError` when another is at another place of the program.
        """
        self._round += 1
        mark = [self._round, what]
        if self.process:
            self._send(0, {"kind": "share", "mark": mark, "value": value})
            return self._take(0, mark)
        values = [value, *(self._take(k, mark) for k in sorted(self._ends))]
        for k in self._ends:
            self._send(k, {"kind": "share", "mark": mark, "value": values})
        return values

    def fail(self, why: str) -> None:
        """Tell all that this process ends with an error, and give them the time to end before it."""
        time.sleep(GRACE_PERIOD / 2)
        if self.ending:  # an error that comes of another's end; the watch knows whose, and says so
            self._thread.join()
        self._leaving = True
        for k in self._ends:
            self._send(k, {"kind": "failed", "process": self.process, "why": why[:2000]})
        until = time.monotonic() + (4 if self.process == 0 else 1) * GRACE_PERIOD
        while len(self._gone) < len(self._ends) and time.monotonic() < until:
            time.sleep(GRACE_PERIOD / 20)

    def close(self) -> None:
        """This process has come to its end, and all is well."""
        for k in self._ends:
            self._send(k, {"kind": "bye"})
        self._over = True

    def _take(self, k: int, mark: list[Any]) -> Any:
        said = self._said[k].get()
        if said["mark"] != mark:
            raise ClusterError(
                f"the processes have come apart: {self.names[self.process]} is at {mark[1]!r}, "
                f"{self.names[k]} at {said['mark'][1]!r}. All must run the same script on the same "
                "input, and take the same branches"
            )
        return said["value"]

    def _send(self, k: int, message: dict[str, Any]) -> None:
        # Who has gone is noticed by the watch, which knows more about it.
        with contextlib.suppress(OSError), self._locks[k]:
            send_message(self._ends[k], message)

    # --- the watch ------------------------------------------------------------------------------

    def _watch(self) -> None:
        with selectors.DefaultSelector() as selector:
            for k, end in self._ends.items():
                selector.register(end, selectors.EVENT_READ, k)
            beaten = 0.0
            while not (self._over and len(self._gone) == len(self._ends)):
                for key, _ in selector.select(HEARTBEAT_INTERVAL / 4):
                    if not self._hear(key.data):
                        selector.unregister(key.fileobj)
                now = time.monotonic()
                if now - beaten >= HEARTBEAT_INTERVAL:
                    beaten = now
                    for k in self._ends.keys() - self._gone:
                        self._send(k, {"kind": "beat"})
                for k in self._ends.keys() - self._gone:
                    if now - self._heard[k] > self._silence:
                        self._end(
                            f"{self.names[k]} has been silent for {self._silence:.0f} s",
                            EXIT_TRY_AGAIN,
                        )
        for end in self._ends.values():
            end.close()

    def _hear(self, k: int) -> bool:
        """Whether there is more to come from `k`."""
        try:
            piece = self._ends[k].recv(2**16)
        except OSError:
            piece = b""
        if not piece:
            if self._leaving:
                self._gone.add(k)
            elif k not in self._gone:
                self._end(
                    f"{self.names[k]} is gone: it was killed, or its machine is lost",
                    EXIT_TRY_AGAIN,
                )
            return False
        self._heard[k] = time.monotonic()
        self._parts[k] += piece
        *whole, rest = self._parts[k].split(b"\n")
        self._parts[k] = rest
        for line in whole:
            self._understand(k, json.loads(line))
        return k not in self._gone

    def _understand(self, k: int, message: dict[str, Any]) -> None:
        kind = message["kind"]
        if kind == "share":
            self._said[k].put(message)
        elif kind == "bye":
            self._gone.add(k)
        elif kind == "failed" and not self._leaving:
            self._end(f"{self.names[message['process']]} failed: {message['why']}", FAILED, k)
        elif kind == "lost" and not self._leaving:
            self._end(message["why"], message["status"], k)

    def _end(self, why: str, status: int, by: int | None = None) -> None:
        """End this process, and those that hear of nobody but process 0."""
        self.ending = True
        left = self._ends.keys() - self._gone - {by}
        for k in left:
            self._send(k, {"kind": "lost", "why": why, "status": status})
        if status == FAILED:
            time.sleep(
                GRACE_PERIOD
            )  # it may be about to end by the same error, and to say more of it
        more = (
            "; start it again, and it resumes from its last checkpoint"
            if status == EXIT_TRY_AGAIN
            else ""
        )
        sys.stderr.write(
            f"physkit: {self.names[self.process]} ends, because {why}. The job cannot go on without "
            f"it{more}\n"
        )
        sys.stderr.flush()
        if self.process == 0:  # last: JAX aborts those that miss it
            self._await(left)
        os._exit(status)

    def _await(self, left: set[int]) -> None:
        """Until the other ends are closed, or it has taken too long."""
        until = time.monotonic() + 4 * GRACE_PERIOD
        for k in left:
            with contextlib.suppress(OSError):
                self._ends[k].settimeout(max(0.01, until - time.monotonic()))
                while self._ends[k].recv(2**16):
                    pass


def send_message(end: socket.socket, message: dict[str, Any]) -> None:
    """One message, as a line."""
    end.sendall(json.dumps(message).encode() + b"\n")


def receive_message(end: socket.socket) -> dict[str, Any]:
    """One message, in the time that `end` allows.

    **Errors:** `OSError`, `ValueError`.
    """
    parts = bytearray()
    while not parts.endswith(b"\n"):
        # Byte by byte: what comes after this line belongs to the watch.
        piece = end.recv(1)
        if not piece or len(parts) > _MOST:
            raise OSError("the connection was closed")
        parts += piece
    said = json.loads(parts)
    if not isinstance(said, dict):
        raise ValueError("not a message")
    return said


def accept_processes(
    address: tuple[str, int], processes: int, me: dict[str, Any], wait: float
) -> tuple[dict[int, socket.socket], list[dict[str, Any]]]:
    """Process 0: wait for the others, and hear what they say of themselves.

    **Errors:** `ClusterError` names who did not come, or why this port cannot be had.
    """
    host, port = address
    alone = host in ("localhost", "127.0.0.1", "::1")
    ends: dict[int, socket.socket] = {}
    said = {0: me}
    try:
        server = socket.create_server((host if alone else "", port), backlog=processes)
    except OSError as error:
        raise ClusterError(
            f"process 0 cannot listen at port {port} ({error.strerror}): another job may be using it. "
            "Set PHYSKIT_COORDINATOR=host:port to another one, in all processes"
        ) from error
    until = time.monotonic() + wait
    with server:
        while len(ends) < processes - 1:
            server.settimeout(max(0.01, until - time.monotonic()))
            try:
                end, _ = server.accept()
            except TimeoutError:
                missing = sorted(set(range(1, processes)) - ends.keys())
                raise ClusterError(
                    f"process {missing} of {processes} did not come within {wait:.0f} s; they look for "
                    f"process 0 at {host}:{port}"
                ) from None
            own = _greeted(end, me, ends)
            if own is not None:
                ends[own["process"]], said[own["process"]] = end, own
    return ends, [said[k] for k in range(processes)]


def _greeted(end: socket.socket, me: dict[str, Any], ends: dict[int, Any]) -> dict[str, Any] | None:
    """What a newcomer says of itself; None where it is none of ours."""
    end.settimeout(5.0)
    try:
        own = receive_message(end)
        ours = own.get("word") == _WORD and own.get("job") == me["job"]
        if not ours or own["process"] in ends or not 0 < own["process"] < me["processes"]:
            send_message(
                end, {"refused": f"this is job {me['job']}, of {me['processes']} processes"}
            )
            end.close()
            return None
    except (OSError, ValueError, KeyError, TypeError):
        end.close()
        return None
    return own


def connect_to_first(address: tuple[str, int], me: dict[str, Any], wait: float) -> socket.socket:
    """Another process: find process 0, and say who is there.

    **Errors:** `ClusterError` when it does not answer.
    """
    until, why = time.monotonic() + wait, "nobody listens"
    while time.monotonic() < until:
        try:
            end = socket.create_connection(address, timeout=max(1.0, until - time.monotonic()))
            if end.getsockname() == end.getpeername():  # a port may answer to itself
                end.close()
                continue
            send_message(end, {**me, "word": _WORD})
            return end
        except OSError as error:
            why = error.strerror or str(error)
            time.sleep(0.1)
    raise ClusterError(
        f"process {me['process']} of {me['processes']} found no process 0 at "
        f"{address[0]}:{address[1]} within {wait:.0f} s ({why}). Is it running, and is the port open "
        "between the machines? PHYSKIT_COORDINATOR=host:port names another"
    )


def open_channel(
    address: tuple[str, int],
    me: dict[str, Any],
    wait: float,
    silence: float,
    judge: Callable[[list[dict[str, Any]]], dict[str, Any]],
) -> tuple[ControlChannel, dict[str, Any]]:
    """The line of a job whose processes have all come, and what `judge` of process 0 says to them.

    **Errors:** `ClusterError`, also when its word is `refused`.
    """
    if me["process"] == 0:
        ends, said = accept_processes(address, me["processes"], me, wait)
        word = {**judge(said), "names": [_name(one) for one in said]}
        for end in ends.values():
            with contextlib.suppress(OSError):
                send_message(end, word)
    else:
        end = connect_to_first(address, me, wait)
        end.settimeout(wait)
        try:
            word = receive_message(end)
        except (OSError, ValueError) as error:
            raise ClusterError(f"process 0 left before all had come ({error})") from error
        ends = {0: end}
    if "refused" in word:
        raise ClusterError(word["refused"])
    for end in ends.values():
        end.settimeout(None)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ControlChannel(me["process"], ends, word["names"], silence), word


def _name(said: dict[str, Any]) -> str:
    return f"process {said['process']} ({said['host']}, {said['pid']})"

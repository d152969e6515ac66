"""The rendezvous of a job's processes: process 0 listens, the others connect to it."""

import contextlib
import socket
import time
from collections.abc import Callable

from physkit.core import ClusterError

from ._control_channel import ControlChannel
from ._messages import Message, receive_message, send_message

_PROTOCOL = "physkit-control-3"


def open_channel(
    address: tuple[str, int],
    introduction: Message,
    wait: float,
    silence: float,
    decide: Callable[[list[Message]], Message],
) -> tuple[ControlChannel, Message]:
    """Wait until all processes of a job have come, and connect them.

    **Arguments:**

    - `address`: host and port where process 0 listens.
    - `introduction`: what this process tells about itself: `process`, `processes`, `job`, `host`, `pid`.
    - `wait`: seconds to wait for the other processes.
    - `silence`: seconds without a heartbeat after which a process counts as lost.
    - `decide`: process 0 calls it with all introductions; every process gets the message that it returns.

    **Returns:** the channel, and the answer of process 0.

    **Errors:** `ClusterError` if a process does not come, or if the answer has a key `refused`.
    """
    if introduction["process"] == 0:
        connections, introductions = accept_processes(
            address, introduction["processes"], introduction, wait
        )
        answer = {**decide(introductions), "names": [_name(each) for each in introductions]}
        for connection in connections.values():
            # A process that has died since is the control channel's to report.
            with contextlib.suppress(OSError):
                send_message(connection, answer)
    else:
        connection = connect_to_first(address, introduction, wait)
        connection.settimeout(wait)
        try:
            answer = receive_message(connection)
        except (OSError, ValueError) as error:
            connection.close()
            raise ClusterError(f"process 0 left before all had come ({error})") from error
        connections = {0: connection}
    if "refused" in answer:
        for connection in connections.values():
            connection.close()
        raise ClusterError(answer["refused"])
    for connection in connections.values():
        connection.settimeout(None)
        # Messages are small and others wait for them: Nagle's algorithm would hold them back to send
        # several at once.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ControlChannel(introduction["process"], connections, answer["names"], silence), answer


def accept_processes(
    address: tuple[str, int], process_count: int, introduction: Message, wait: float
) -> tuple[dict[int, socket.socket], list[Message]]:
    """On process 0: accept the others, and receive their introductions.

    **Errors:** `ClusterError` names the processes that did not come, or why the port cannot be opened.
    """
    host, port = address
    # Processes of one machine need no port that is open to the network.
    is_local = host in ("localhost", "127.0.0.1", "::1")
    connections: dict[int, socket.socket] = {}
    introductions = {0: introduction}
    try:
        server = socket.create_server((host if is_local else "", port), backlog=process_count)
    except OSError as error:
        raise ClusterError(
            f"process 0 cannot listen at port {port} ({error.strerror}): another job may be using it. "
            "Set PHYSKIT_COORDINATOR=host:port to another one, in all processes"
        ) from error
    deadline = time.monotonic() + wait
    with server:
        while len(connections) < process_count - 1:
            server.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                connection, _ = server.accept()
            except TimeoutError:
                for connection in connections.values():
                    connection.close()
                missing = sorted(set(range(1, process_count)) - connections.keys())
                raise ClusterError(
                    f"process {missing} of {process_count} did not come within {wait:.0f} s; they look "
                    f"for process 0 at {host}:{port}"
                ) from None
            newcomer = _introduction_of(connection, introduction, connections)
            if newcomer is not None:
                connections[newcomer["process"]] = connection
                introductions[newcomer["process"]] = newcomer
    return connections, [introductions[k] for k in range(process_count)]


def connect_to_first(address: tuple[str, int], introduction: Message, wait: float) -> socket.socket:
    """On every other process: connect to process 0, and introduce this one.

    **Errors:** `ClusterError` if process 0 does not answer.
    """
    # Process 0 may start later than this one: try again until the time is over.
    deadline, reason = time.monotonic() + wait, "nobody listens"
    while time.monotonic() < deadline:
        try:
            timeout = max(1.0, deadline - time.monotonic())
            connection = socket.create_connection(address, timeout=timeout)
            if connection.getsockname() == connection.getpeername():
                # TCP lets a socket connect to itself where the port is free and in the ephemeral range.
                connection.close()
                continue
            send_message(connection, {**introduction, "protocol": _PROTOCOL})
            return connection
        except OSError as error:
            reason = error.strerror or str(error)
            time.sleep(0.1)
    raise ClusterError(
        f"process {introduction['process']} of {introduction['processes']} found no process 0 at "
        f"{address[0]}:{address[1]} within {wait:.0f} s ({reason}). Is it running, and is the port open "
        "between the machines? PHYSKIT_COORDINATOR=host:port names another"
    )


def _introduction_of(
    connection: socket.socket, introduction: Message, connections: dict[int, socket.socket]
) -> Message | None:
    """The introduction of a newcomer; None if it is no process of this job, or has come before."""
    # Port scanners connect and say nothing: they must not hold up the processes behind them for long.
    connection.settimeout(5.0)
    try:
        newcomer = receive_message(connection)
        refusal = _why_refused(newcomer, introduction, connections)
        if refusal:
            send_message(connection, {"refused": refusal})
            connection.close()
            return None
    except (OSError, ValueError, KeyError, TypeError):
        # Whatever it was, it does not speak this protocol. The listener goes on.
        connection.close()
        return None
    return newcomer


def _why_refused(
    newcomer: Message, introduction: Message, connections: dict[int, socket.socket]
) -> str | None:
    job, process, process_count = (
        introduction["job"],
        newcomer["process"],
        introduction["processes"],
    )
    if newcomer.get("protocol") != _PROTOCOL:
        return "process 0 has another version of physkit"
    if newcomer["job"] != job:
        # Jobs on one machine may derive the same port from their numbers (see `_coordinator_address`).
        return (
            f"another job listens where this one ({newcomer['job']}) looks for its process 0: {job}. Set "
            "PHYSKIT_COORDINATOR=host:port to another port, in all processes of one of them"
        )
    if process in connections or not 0 < process < process_count:
        return (
            f"there is a process {process} already, or none of this number among {process_count}: each "
            "needs a number of its own, from 0"
        )
    return None


def _name(introduction: Message) -> str:
    return f"process {introduction['process']} ({introduction['host']}, {introduction['pid']})"

"""Messages between processes: one JSON object per line."""

import json
import socket
from typing import Any, TypeAlias

_MAX_BYTES = 2**24  # of a message

Message: TypeAlias = dict[str, Any]  # what JSON takes


def send_message(connection: socket.socket, message: Message) -> None:
    """Send one message, as a line of JSON."""
    connection.sendall(json.dumps(message).encode() + b"\n")


def receive_message(connection: socket.socket) -> Message:
    """Receive one message, within the timeout of `connection`.

    **Errors:** `OSError`, `ValueError`.
    """
    line = bytearray()
    while not line.endswith(b"\n"):
        # Byte by byte: what follows this line belongs to the channel's watcher thread.
        piece = connection.recv(1)
        if not piece or len(line) > _MAX_BYTES:
            raise OSError("the connection was closed")
        line += piece
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("not a message")
    return message

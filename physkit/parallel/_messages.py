"""Messages between processes: one JSON object per line of text."""

import json
import socket
from typing import Any, TypeAlias

_MAX_BYTES = 2**24  # of a message

JsonValue: TypeAlias = (
    bool | int | float | str | list[Any] | tuple[Any, ...] | dict[str, Any] | None
)
Message: TypeAlias = dict[str, Any]  # values as `JsonValue`


def send_message(connection: socket.socket, message: Message) -> None:
    """Send one message, as a line of JSON."""
    connection.sendall(json.dumps(message).encode() + b"\n")


def receive_message(connection: socket.socket) -> Message:
    """Receive one message, within the timeout of `connection`.

    **Errors:** `OSError` if the connection was closed, `ValueError` if what came is not a message.
    """
    line = bytearray()
    while not line.endswith(b"\n"):
        # Byte by byte: what follows this line belongs to the channel's watcher thread, which starts later
        # and has a buffer of its own.
        received = connection.recv(1)
        # The bound keeps a stranger at the port from filling memory with a line that never ends.
        if not received or len(line) > _MAX_BYTES:
            raise OSError("the connection was closed")
        line += received
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError(f"a message is a JSON object; got {type(message).__name__}")
    return message

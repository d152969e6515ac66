"""Floor 1: devices. Communicators, of which today there is the serial one."""

from ._comm import AbstractComm as AbstractComm, Serial as Serial

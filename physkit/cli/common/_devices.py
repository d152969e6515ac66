"""`--devices`: the devices that a domain is sharded over, emulated where there is nothing but a CPU."""

import argparse
import math
import os
import re

DEVICE_COUNT_FLAG = "--xla_force_host_platform_device_count"


def add_devices_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument that says how many devices there are along each axis."""
    parser.add_argument(
        "--devices",
        metavar="2x2",
        help="shard the domain: devices per axis (2x2, 4), gpu, gpu:4, cpu:2x2; emulated on CPU",
    )


def choose_devices(text: str | None, emulate: bool = True) -> str | tuple[int, ...] | None:
    """What `devices=` of `physkit.run` takes; asks JAX for as many emulated CPU devices.

    JAX reads that when it is imported, which is still to come; it does not touch GPUs.

    **Errors:** `ValueError` for text that names no devices.
    """
    if text is None:
        return None
    # [platform][:][sizes], a colon between the two only.
    match = re.fullmatch(r"(?:(cpu|gpu|tpu)(?::|$))?(\d+(?:x\d+)*)?", text)
    if match is None or not text or text.endswith(":"):
        raise ValueError(
            f"--devices {text}: numbers per axis of space as in 2x2 or 4, gpu, gpu:4, cpu:2x2"
        )
    shape = tuple(int(n) for n in match[2].split("x")) if match[2] else None
    # Without a platform JAX may still find GPUs; then the emulated CPU devices are not used.
    if emulate and shape and match[1] in (None, "cpu"):
        _emulate(math.prod(shape))
    return shape if match[1] is None else text


def _emulate(count: int) -> None:
    """Ask XLA for so many CPU devices, unless the environment says how many there are."""
    flags = os.environ.get("XLA_FLAGS", "")
    if count > 1 and DEVICE_COUNT_FLAG not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {DEVICE_COUNT_FLAG}={count}".strip()

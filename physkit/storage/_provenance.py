"""Provenance of a file: the versions, machine, devices and command that wrote it, and when."""

import datetime
import platform
import sys
from typing import Any

import jax

from physkit.core import printable
from physkit.native import kernels_are_used, native_code_is_used
from physkit.parallel import versions

_NATIVE_CODE, _NOT_USED = "native code", "not used"
# If one of these differs, a continued run need not have the same bits.
DECISIVE_KEYS = (
    "physkit", "jax", "jaxlib", "python", "numpy", "machine", "devices", "precision", _NATIVE_CODE,
)  # fmt: skip


def collect_provenance() -> dict[str, Any]:
    """Versions, machine, devices, command and time, of types that JSON knows."""
    has_gpu = any(d.platform == "gpu" for d in jax.devices())
    has_native_code = native_code_is_used() or (kernels_are_used() and has_gpu)
    kinds = sorted({f"{d.platform} {d.device_kind}" for d in jax.devices()})
    return {
        **versions(),
        "machine": f"{platform.system()} {platform.machine()}",
        _NATIVE_CODE: "used" if has_native_code else _NOT_USED,
        "devices": f"{len(jax.devices())} × {', '.join(kinds)}",
        "command": " ".join(sys.argv)[:1000],  # a shell's `*` can make it very long
        "written": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def provenance_changes(stored: dict[str, Any]) -> list[str]:
    """The versions, devices and precision that differ from those a file was written with."""
    current = collect_provenance()
    stored = {_NATIVE_CODE: _NOT_USED, **stored}  # files of versions without it do not say
    return [
        printable(f"{key} {str(stored.get(key))[:200]} → {current[key]}")
        for key in DECISIVE_KEYS
        if stored.get(key) != current[key]
    ]

"""Where a file comes from: what wrote it, when and on what."""

import datetime
import platform
import sys
from typing import Any

import jax

from physkit.parallel import versions

# If one of these differs, a continued run need not have the same bits.
DECISIVE_KEYS = ("physkit", "jax", "jaxlib", "python", "numpy", "machine", "devices", "precision")


def collect_provenance() -> dict[str, Any]:
    """Versions, devices, command and time, as JSON takes them."""
    kinds = sorted({f"{d.platform} {d.device_kind}" for d in jax.devices()})
    return {
        **versions(),
        "machine": f"{platform.system()} {platform.machine()}",
        "devices": f"{len(jax.devices())} × {', '.join(kinds)}",
        "command": " ".join(sys.argv)[:1000],
        "written": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def provenance_changes(stored: dict[str, Any]) -> list[str]:
    """Which versions, devices and precision differ from those that a file was written with."""
    here = collect_provenance()
    return [f"{k} {stored.get(k)} → {here[k]}" for k in DECISIVE_KEYS if stored.get(k) != here[k]]

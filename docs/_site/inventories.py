"""Names of other packages that pages link to, as Sphinx inventories made from `references.toml`.

The inventories of those packages lie on the network; this site builds without one.
"""

import tomllib
import zlib
from pathlib import Path

REFERENCES = Path(__file__).parent / "references.toml"
FOLDER = Path(__file__).parent / "_inventories"


def mapping() -> dict[str, tuple[str, tuple[str]]]:
    """For `intersphinx_mapping`: package → address and local inventory."""
    packages = tomllib.loads(REFERENCES.read_text(encoding="utf-8"))
    FOLDER.mkdir(exist_ok=True)
    found = {}
    for package, content in packages.items():
        path = FOLDER / f"{package}.inv"
        path.write_bytes(to_inventory(package, content["names"]))
        found[package] = (content["address"], (str(path),))
    return found


def to_inventory(package: str, names: dict[str, str]) -> bytes:
    """An inventory, version 2: `name domain:role priority address -`."""
    head = f"# Sphinx inventory version 2\n# Project: {package}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    rows = "".join(f"{name} py:function 1 {page} -\n" for name, page in names.items())
    return head.encode() + zlib.compress(rows.encode())

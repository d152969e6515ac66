"""Names of other codes, and what they are here: the table behind "did you mean"."""

from physkit._synonyms import SYNONYMS

HEAD = """# Words of other codes

What is called otherwise elsewhere: ASE, diffrax, Dedalus, exponax, GROMACS, HOOMD, JAX-CFD, JAX-MD, LAMMPS,
Oceananigans, OpenMM, REBOUND, SciPy. Typed after `pk.`, each answers with the same line.

| there | here |
|---|---|
"""


def pages() -> dict[str, str]:
    """File → text."""
    rows = []
    for word, remedy in sorted(SYNONYMS.items(), key=lambda item: item[0].lower()):
        remedy = remedy.replace("|", r"\|")
        rows.append(f"| {word} | {remedy if '`' in remedy else _marked(remedy)} |")
    return {"generated/words.md": HEAD + "\n".join(rows) + "\n"}


def _marked(remedy: str) -> str:
    """The names of a remedy as code, so that they link."""
    words = remedy.split(" ")
    return " ".join(_code(word) for word in words)


def _code(word: str) -> str:
    if not word.startswith("pk."):
        return word
    name = word.rstrip(",;:.")
    end = len(name) if "(" not in name else name.index("(")
    return f"`{word[:end]}`{word[end:]}"

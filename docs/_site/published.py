"""The published numbers that `physkit validate` computes again, beside what came out last, as a table."""

import inspect
import json
import re
from pathlib import Path

from physkit.testing.validation import Case, Published, cases

KEPT = Path(__file__).with_name("computed.json")
DRAWN = Path(__file__).with_name("drawn.json")
HEAD = """---
html_theme.sidebar_secondary.remove: true
---

# Published numbers

`physkit validate` computes each of these on your machine and prints how far off it is; `--quick` leaves out
those that take longer than seconds. The table shows what came out here, and on which day. Where these columns
are empty the case is a long one, or needs files that are no part of physkit, and was not kept.

```{table}
:class: numbers

| case and source | number | published | allowed | computed | on |
|---|---|---|---|---|---|
"""


def pages(root: Path) -> dict[str, str]:
    """File → text."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    rows = []
    for case in cases():
        for number in case.published:
            first = number is case.published[0]
            about = f"**{case.name}** {_cell(case.source)}" if first else ""
            rows.append(
                f"| {about} | {_cell(number.name)} | {number.value:.12g} | {number.allowed} "
                f"| {' | '.join(_computed(kept, case, number))} |"
            )
    return {
        "generated/published-numbers.md": HEAD + "\n".join(rows) + "\n```\n",
        "generated/last-runs.md": _last_runs(root, kept),
    }


def _last_runs(root: Path, kept: dict) -> str:
    """What was run last, when, and with which result, as a table that other pages include."""
    known = {case.name: case for case in cases()}
    numbers = [
        (case["on"], number.accepts(case["numbers"][number.name]))
        for name, case in kept.items()
        for number in known[name].published
    ]
    total = sum(len(case.published) for case in known.values())
    right = sum(is_right for _, is_right in numbers)
    drawn = json.loads(DRAWN.read_text(encoding="utf-8"))
    seconds = sum(example["seconds"] for example in drawn.values())
    tables = "".join(
        p.read_text("utf-8") for p in sorted((root / "benchmarks/results").glob("*.md"))
    )
    measured = re.findall(r"\b20\d\d-\d\d-\d\d\b", tables)
    rows = [
        ("[published numbers](/generated/published-numbers.md)", [on for on, _ in numbers],
         f"{len(numbers)} of {total} numbers computed, {right} within their tolerance"),
        ("[examples](/gallery/index.md)", [example["on"] for example in drawn.values()],
         f"{len(drawn)} run at full size and drawn, {seconds / 60:.0f} minutes of processor time"),
        ("[speed](/generated/benchmarks.md) beside other codes", measured, "tables as they were printed"),
    ]  # fmt: skip
    lines = [f"| {what} | {_days(days)} | {result} |" for what, days, result in rows]
    return "| what | on | result |\n|---|---|---|\n" + "\n".join(lines) + "\n"


def _days(found: list[str]) -> str:
    """From the first day to the last."""
    days = sorted(set(found))
    return " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "never"


def _computed(kept: dict, case: Case, published: Published) -> tuple[str, str]:
    """What came out and when; empty where nothing is kept."""
    last = kept.get(case.name, {})
    computed = last.get("numbers", {}).get(published.name)
    if computed is None:
        return "", ""
    text = f"{computed:.8g}"
    return text if published.accepts(computed) else f"**{text}, off**", last["on"]


def _cell(text: str) -> str:
    return inspect.cleandoc(text).replace("\n", " ").replace("|", r"\|")

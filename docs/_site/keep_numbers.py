"""`python docs/_site/keep_numbers.py [NAME …]`: compute published numbers and keep what came out, with the day.

Without names all quick cases. The page of published numbers shows what is kept.
"""

import datetime
import json
import sys
from pathlib import Path

import jax

import physkit as pk
from physkit.simulate import ending_at_once
from physkit.testing.validation import cases, evaluate, missing_data

KEPT = Path(__file__).with_name("computed.json")


def main(names: list[str]) -> int:
    """Compute the chosen cases; returns how many numbers are off."""
    jax.config.update("jax_enable_x64", True)
    pk.use_compilation_cache()
    known = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    chosen = [case for case in cases() if (case.name in names if names else not case.slow)]
    off, today = 0, datetime.date.today().isoformat()
    with ending_at_once():
        for case in chosen:
            if missing_data(case):
                continue
            found = evaluate(case)
            off += sum(not number.passed for number in found)
            known[case.name] = {
                "on": today,
                "seconds": round(found[0].seconds, 1),
                "numbers": {number.published.name: number.computed for number in found},
            }
            print(case.name, known[case.name], flush=True)
            # After each: what is stopped keeps what it has.
            text = json.dumps(dict(sorted(known.items())), indent=1, ensure_ascii=False)
            KEPT.write_text(text + "\n", encoding="utf-8")
    return off


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

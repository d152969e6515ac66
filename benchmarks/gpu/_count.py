"""What a compiled GPU program costs before any byte is moved: launches, waits of the host, scatters.

Read from the text of the final, scheduled program. Each instruction that does something is one launch; loops of
known length count as often as they turn. The host waits for the device wherever a number decides what comes
next: a conditional once, a loop of unknown length before each turn.
"""

import dataclasses
import re

# They rename memory, or belong to a launch that is counted elsewhere.
_FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "domain"}
_FREE |= {"add-dependency", "optimization-barrier", "partition-id", "replica-id", "async-update"}
_HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%([\w.\-]+) = (.*)$")
_CALLED = re.compile(
    r"(?:to_apply|calls|body|condition|true_computation|false_computation)=%?([\w.\-]+)"
)
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_BODY = re.compile(r"body=%?([\w.\-]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')


@dataclasses.dataclass(frozen=True)
class Cost:
    """Of one pass through a program, or of a step of it.

    - `launches`: kernels, transforms, sorts, copies, where every conditional takes its cheapest branch and
      every loop of unknown length turns once.
    - `most`: the same where conditionals take their dearest branch: a step that rebuilds lists.
    - `syncs`: how often the host waits for a number.
    - `scatters`: of floating numbers to indices that may repeat: atomic additions in any order.
    """

    launches: float = 0
    most: float = 0
    syncs: float = 0
    scatters: float = 0

    def __add__(self, other: "Cost") -> "Cost":
        mine, its = dataclasses.astuple(self), dataclasses.astuple(other)
        return Cost(*(a + b for a, b in zip(mine, its)))

    def __mul__(self, factor: float) -> "Cost":
        return Cost(*(a * factor for a in dataclasses.astuple(self)))


class Program:
    """The text of a compiled program, by computation."""

    def __init__(self, text: str):
        self.computations: dict[str, list[tuple[str, str]]] = {}
        self.entry = ""
        current: list[tuple[str, str]] = []
        for line in text.splitlines():
            header = _HEADER.match(line)
            if header:
                current = self.computations[header[2]] = []
                self.entry = header[2] if header[1] else self.entry
            elif match := _INSTRUCTION.match(line):
                current.append((match[1], match[2]))
        self._known: dict[str, Cost] = {}

    def cost(self, name: str | None = None) -> Cost:
        """Of one pass through a computation: through the whole program if no name is given."""
        name = name or self.entry
        if name not in self._known:
            total = Cost()
            for _, text in self.computations[name]:
                total += self._instruction(text)
            self._known[name] = total
        return self._known[name]

    def step(self) -> Cost:
        """Of a turn of the last loop of unknown length at the top: over the steps that fill no group."""
        return [self.cost(body) for body, trips in self._loops() if trips is None][-1]

    def turns(self, count: int) -> Cost:
        """Of one turn of each loop at the top that makes `count` turns, all of them together."""
        return sum((self.cost(body) for body, trips in self._loops() if trips == count), Cost())

    def _loops(self) -> list[tuple[str, int | None]]:
        """Body and turns, where known, of each loop at the top."""
        found = []
        for _, text in self.computations[self.entry]:
            if _opcode(text) == "while":
                trips = _TRIPS.search(text)
                found.append((_BODY.search(text)[1], int(trips[1]) if trips else None))
        return found

    def _instruction(self, text: str) -> Cost:
        opcode = _opcode(text)
        # What waits for something that was started before is no launch: `fusion-done`, `all-reduce-done`.
        if opcode in _FREE or opcode.endswith("-done"):
            return Cost()
        if opcode == "while":
            body = self.cost(_BODY.search(text)[1])
            trips = _TRIPS.search(text)
            if trips:
                return body * int(trips[1])
            condition = self.cost(re.search(r"condition=%?([\w.\-]+)", text)[1])
            # Turns once, and is asked twice.
            return body + condition * 2 + Cost(syncs=2)
        if opcode == "conditional":
            branches = [self.cost(name) for name in _branches(text)]
            least = min(branches, key=lambda c: c.launches)
            dearest = max(branches, key=lambda c: c.most)
            scatters = max(c.scatters for c in branches)
            return Cost(least.launches, dearest.most, 1 + least.syncs, scatters)
        if opcode == "call":
            return self.cost(_CALLED.search(text)[1])
        return Cost(launches=1, most=1, scatters=self._scatters(opcode, text))

    def _scatters(self, opcode: str, text: str) -> int:
        """Scatters of floating numbers with repeated indices, in the instruction or what it fuses."""
        if opcode in ("fusion", "fusion-start", "async-start"):
            called = _CALLED.search(text)
            inside = self.computations.get(called[1], []) if called else []
            return sum(self._scatters(_opcode(t), t) for _, t in inside)
        is_atomic = opcode == "scatter" and "unique_indices=true" not in text
        # A scatter that only writes has no sum in its combiner.
        combiner = self.computations.get(_CALLED.search(text)[1], []) if is_atomic else []
        adds = any(re.match(r"[fc]\d+\[\]\S* add", t) for _, t in combiner)
        return int(is_atomic and adds)


def _opcode(text: str) -> str:
    """The name of an instruction, from what stands right of its equals sign: after the shape."""
    depth = 0
    for k, letter in enumerate(text):
        depth += letter in "([{"
        depth -= letter in ")]}"
        if letter == " " and depth == 0:
            return re.match(r"[\w\-]+", text[k + 1 :])[0]
    return ""


def _branches(text: str) -> list[str]:
    listed = _BRANCHES.search(text)
    if listed:
        return [name.strip().lstrip("%") for name in listed[1].split(",")]
    return _CALLED.findall(text)


def low_precision_dots(stablehlo: str) -> int:
    """Products of matrices and convolutions of float32 or complex64 that may be rounded to TF32."""
    found = 0
    for line in stablehlo.splitlines():
        if re.search(r"stablehlo\.(dot_general|convolution)", line):
            is_single = re.search(r"xf32>|complex<f32>>|tensor<f32>", line) is not None
            found += is_single and "HIGHEST" not in line
    return found

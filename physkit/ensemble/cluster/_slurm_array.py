"""Options of a Slurm job array, as a job script and as parameters of submitit."""

import dataclasses
import re
import shlex
from collections.abc import Mapping, Sequence

from physkit.core import ParameterError, explain_class

_OPTION_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_LINE_BREAK = re.compile(r"[\r\n\0]")  # would let an option start a directive of its own


@explain_class
@dataclasses.dataclass(frozen=True)
class SlurmArray:
    """A Slurm job array, each of whose elements computes chunks of a sweep until none are left.

    Elements share the chunks by claims: one that starts late, or again, takes over what is missing.
    `warning` seconds before its time is up, and when it is preempted, an element finishes its current
    chunk if that takes no more than a few seconds, else saves it, and requeues itself.

    **Arguments:**

    - `elements`: jobs in the array.
    - `minutes`: the longest that one may run. A chunk that takes longer is saved, and goes on from there; a
      member that is sharded over devices must fit into it.
    - `partition`, `account`, `constraint`, `qos`: as Slurm calls them.
    - `gpus`, `cpus`: for each element. `memory`: the same, with its unit, `"16G"`.
    - `max_running`: so many elements may run at the same time.
    - `warning`: seconds between the signal to stop and the end.
    - `requeue`: go back into the queue when stopped before all chunks are finished.
    - `setup`: lines of shell before the work: `("module load python",)`.
    - `options`: any other of sbatch's long options, `{"exclude": "node7"}`.

    **Errors:** `ParameterError`.

    **Good values:** a few more elements than can run at once; chunks of one to ten minutes; a `warning` of a
    minute or two, for the compilation or the blocks that a signal waits for and for writing.
    """

    elements: int = 8
    minutes: int = 60
    partition: str | None = None
    account: str | None = None
    constraint: str | None = None
    qos: str | None = None
    gpus: int = 0
    cpus: int | None = None
    memory: str | None = None
    max_running: int | None = None
    warning: int = 120
    requeue: bool = True
    setup: Sequence[str] = ()
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        for name, minimum in (("elements", 1), ("minutes", 1), ("gpus", 0), ("warning", 0)):
            if getattr(self, name) < minimum:
                raise ParameterError(
                    f"{name} must be at least {minimum}; got {getattr(self, name)}"
                )
        for name in ("cpus", "max_running"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ParameterError(f"{name} must be at least 1; got {getattr(self, name)}")
        if self.warning >= 60 * self.minutes:
            raise ParameterError(
                f"warning ({self.warning} s) must be shorter than the job ({self.minutes} minutes)"
            )
        if isinstance(self.setup, str):
            raise ParameterError("setup must be a sequence of lines of shell, not one string")
        # Checked as they are written: every option may come from a user's command line.
        for name, value in self.directives("job").items():
            if not _OPTION_NAME.fullmatch(name) or _LINE_BREAK.search(value):
                raise ParameterError(f"sbatch does not take option {name!r} with value {value!r}")

    def directives(self, name: str) -> dict[str, str]:
        """Options of sbatch, but for the array and the log."""
        options = {
            "job-name": name,
            "time": str(self.minutes),
            "partition": self.partition,
            "account": self.account,
            "constraint": self.constraint,
            "qos": self.qos,
            "gres": f"gpu:{self.gpus}" if self.gpus else None,
            "cpus-per-task": None if self.cpus is None else str(self.cpus),
            "mem": self.memory,
            "signal": f"USR1@{self.warning}",
            # A requeued job must not overwrite the log of its first start.
            "open-mode": "append",
        }
        options = {k: v for k, v in options.items() if v is not None} | dict(self.options)
        return options | {"requeue": ""} if self.requeue else options

    def script(self, command: Sequence[str], *, name: str) -> str:
        """The text of a job script for sbatch: each element runs `command` with its `--worker`.

        **Arguments:**

        - `command`: words of a worker's command line.
        - `name`: of the job. What elements print goes to `NAME-JOB_ELEMENT.txt` beside the script.
        """
        limit = "" if self.max_running is None else f"%{self.max_running}"
        directives = {
            **self.directives(name),
            "array": f"0-{self.elements - 1}{limit}",
            "output": "%x-%A_%a.txt",
        }
        lines = [f"#SBATCH --{k}={v}" if v else f"#SBATCH --{k}" for k, v in directives.items()]
        words = [shlex.quote(word) for word in command]
        worker = f'--worker "$SLURM_ARRAY_TASK_ID/{self.elements}"'
        return "\n".join(
            [
                "#!/bin/bash",
                *lines,
                "",
                "# Elements share the chunks by claims in the folder. One that is told to stop (its time is",
                "# nearly up, or it is preempted) finishes or saves its chunk and goes back into the queue.",
                *self.setup,
                " ".join(["srun --ntasks=1", *words, worker, *["--requeue"] * self.requeue]),
                "",
            ]
        )

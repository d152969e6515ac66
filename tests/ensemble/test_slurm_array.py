"""Job arrays: the job script, and options that Slurm does not take."""

import subprocess

import pytest

from physkit.core import ParameterError
from physkit.ensemble import SlurmArray

WORDS = ["physkit", "sweep", "run", "my case.py", "--to", "out"]


def test_the_script_has_the_options(tmp_path):
    array = SlurmArray(
        elements=16,
        minutes=90,
        partition="gpu",
        gpus=2,
        memory="16G",
        max_running=4,
        warning=60,
        setup=("module load python", "export A='b c'"),
        options={"exclude": "node7"},
    )
    text = array.script(WORDS, name="sweep-out")
    directives = [
        line.removeprefix("#SBATCH --") for line in text.splitlines() if "#SBATCH" in line
    ]
    assert set(directives) == {
        *(
            "job-name=sweep-out",
            "array=0-15%4",
            "time=90",
            "partition=gpu",
            "gres=gpu:2",
            "mem=16G",
        ),
        *("signal=USR1@60", "open-mode=append", "requeue", "exclude=node7", "output=%x-%A_%a.txt"),
    }
    last = text.splitlines()[-1]
    assert last.startswith("srun --ntasks=1 physkit sweep run 'my case.py' --to out --worker")
    assert last.endswith("--requeue")
    # A shell reads it, and runs the work behind the setup.
    (tmp_path / "bin").mkdir()
    for name in ("srun", "module"):
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\nprintf "%s|" {name} "$A" "$@"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    process = subprocess.run(
        ["bash", "-c", text],
        env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "SLURM_ARRAY_TASK_ID": "5"},
        capture_output=True,
        text=True,
        check=True,
    )
    words = [*WORDS, "--worker", "5/16", "--requeue"]
    assert process.stdout == "module||load|python|" + "|".join(
        ["srun", "b c", "--ntasks=1", *words, ""]
    )


def test_a_script_without_requeue():
    text = SlurmArray(requeue=False).script(WORDS, name="a")
    assert "requeue" not in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"elements": 0}, "elements"),
        ({"minutes": 0}, "minutes"),
        ({"gpus": -1}, "gpus"),
        ({"max_running": 0}, "max_running"),
        ({"minutes": 2, "warning": 120}, "shorter"),
        ({"setup": "module load python"}, "sequence"),
        ({"options": {"wrap=x": "y"}}, "wrap=x"),
        ({"partition": "a\n#SBATCH --uid=0"}, "partition"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        SlurmArray(**options)

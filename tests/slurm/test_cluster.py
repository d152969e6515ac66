"""The test cluster has what the other tests need: two nodes, arrays, requeueing, and preemption."""

import time


def test_a_step_runs_on_two_nodes(run_command):
    output = run_command("srun", "-N2", "-n2", "sh", "-c", "echo $SLURMD_NODENAME $SLURM_PROCID")
    assert sorted(output.split("\n")) == ["pk-n1 0", "pk-n2 1"]


def test_names_of_nodes_resolve(run_command):
    output = run_command("srun", "-N2", "-n2", "getent", "hosts", "pk-n1")
    assert output.count("127.0.0.1") == 2


def test_array_elements_know_their_index(run_command, tmp_path):
    run_command(
        *("sbatch", "--wait", "--array=0-2", f"--output={tmp_path}/%a.txt"),
        "--wrap=echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT",
    )
    assert [(tmp_path / f"{k}.txt").read_text() for k in range(3)] == [
        f"{k} of 3\n" for k in range(3)
    ]


def test_preempted_jobs_are_requeued(run_command, tmp_path):
    job = run_command(
        *("sbatch", "--parsable", "-N2", "--exclusive", "--requeue", "--open-mode=append"),
        *(f"--output={tmp_path}/job.txt", "--wrap=echo start; exec sleep 30"),
    )
    log = tmp_path / "job.txt"
    _wait_until(lambda: log.exists() and "start" in log.read_text())
    run_command("srun", "-p", "urgent", "-N2", "--exclusive", "true", timeout=60)
    _wait_until(lambda: log.read_text().count("start") == 2)
    run_command("scancel", job)


def _wait_until(condition, seconds: float = 60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.2)

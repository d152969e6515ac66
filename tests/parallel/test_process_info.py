"""Detection of the job that a process belongs to, from the environment variables of launchers."""

import socket

import pytest

from physkit.core import ClusterError
from physkit.parallel._process_group import _assigned_gpus, _jax_coordinator, _reserved_port
from physkit.parallel._process_info import ProcessInfo, detect_process, first_host

STEP = {
    "SLURM_JOB_ID": "1234",
    "SLURM_STEP_ID": "0",
    "SLURM_NTASKS": "4",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_STEP_NODELIST": "gpu[07-08]",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
}


def test_detects_a_slurm_step():
    info = detect_process(STEP)
    assert info == ProcessInfo("Slurm", 3, 4, "gpu07", info.port, 1, 2, "1234.0")
    assert 1024 < info.port < 32768
    assert detect_process({**STEP, "SLURM_JOB_ID": "1235"}).port != info.port
    assert detect_process({**STEP, "SLURM_STEP_ID": "1"}).port != info.port
    given = detect_process({**STEP, "PHYSKIT_COORDINATOR": "[::1]:50001"})
    assert (given.address, given.port) == ("::1", 50001)


def test_jobs_that_share_a_port_are_told_apart():
    """Ports are made from the numbers of jobs, which are more than there are ports."""

    def detect(job, step, process=1):
        numbers = {"SLURM_JOB_ID": job, "SLURM_STEP_ID": step, "SLURM_PROCID": str(process)}
        return detect_process({**STEP, **numbers})

    info, other = detect("1000", "17"), detect("1001", "0")
    assert (info.address, info.port) == (other.address, other.port)
    assert info.job_description == "Slurm 1000.17, 4 processes"
    assert other.job_description == "Slurm 1001.0, 4 processes"
    assert detect("1000", "17", 2).job_description == info.job_description
    mpi = {
        "OMPI_COMM_WORLD_RANK": "1",
        "OMPI_COMM_WORLD_SIZE": "2",
        "PMIX_NAMESPACE": "prterun-7@1",
    }
    address = {"PHYSKIT_COORDINATOR": "a:5000"}
    assert detect_process({**mpi, **address}).job_description == "Open MPI prterun-7@1, 2 processes"


SINGLE_PROCESS = {
    "a laptop": {},
    "salloc": {"SLURM_JOB_ID": "1", "SLURM_NTASKS": "4", "SLURM_JOB_NODELIST": "a,b"},
    "salloc with a shell on the node": {
        **STEP,
        "SLURM_STEP_NUM_TASKS": "1",
        "SLURM_PROCID": "0",
        "SLURM_STEP_ID": "4294967290",
    },
    "a batch script before srun": {
        "SLURM_JOB_ID": "1",
        "SLURM_NTASKS": "4",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_NODELIST": "a,b",
    },
    "srun -n 1": {**STEP, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"},
    "a job array": {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "2"},
}


@pytest.mark.parametrize("name", SINGLE_PROCESS)
def test_an_allocation_without_a_step_is_a_single_process(name):
    assert detect_process(SINGLE_PROCESS[name]) is None


def test_detects_open_mpi_kubernetes_and_plain_variables():
    mpi = {
        "OMPI_COMM_WORLD_RANK": "1",
        "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    }
    assert detect_process(mpi).address == "localhost"
    two_machines = {**mpi, "OMPI_COMM_WORLD_LOCAL_SIZE": "1", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
    uri = "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911"
    assert detect_process({**two_machines, "OMPI_MCA_orte_hnp_uri": uri}).address == "10.96.0.1"
    with pytest.raises(ClusterError, match="PHYSKIT_COORDINATOR"):
        detect_process(two_machines)
    pod = {
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "JOB_COMPLETION_INDEX": "1",
        "PHYSKIT_PROCESSES": "3",
        "PHYSKIT_COORDINATOR": "job-0.flow:5000",
    }
    assert detect_process(pod) == ProcessInfo("Kubernetes", 1, 3, "job-0.flow", 5000)
    plain_variables = {
        "PHYSKIT_COORDINATOR": "a:5000",
        "PHYSKIT_PROCESSES": "2",
        "PHYSKIT_PROCESS": "1",
    }
    assert detect_process({**STEP, **plain_variables}).launcher == "the environment"


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({**STEP, "SLURM_PROCID": "four"}, "SLURM_PROCID='four'"),
        ({**STEP, "SLURM_PROCID": "4"}, "process 4 of 4"),
        ({**STEP, "SLURM_STEP_NODELIST": ""}, "names no machine"),
        ({**STEP, "PHYSKIT_COORDINATOR": "nowhere"}, "host:port"),
        ({"PHYSKIT_PROCESS": "1"}, "PHYSKIT_COORDINATOR"),
        ({"PHYSKIT_COORDINATOR": "a:5000", "PHYSKIT_PROCESSES": "2"}, "set PHYSKIT_PROCESS, 0"),
    ],
)
def test_incomplete_variables_raise_errors_that_name_them(environment, message):
    with pytest.raises(ClusterError, match=message):
        detect_process(environment)


def test_first_host_of_a_slurm_node_list():
    names = ["a", "a,b", "gpu[07-09,12]", "gpu[3]", "n[1-2]-ib,x", "rack-1,rack-2"]
    assert [first_host(n) for n in names] == ["a", "a", "gpu07", "gpu3", "n1-ib", "rack-1"]
    names = ["rack[1-2]n[3-4]", "rack[1,3]n[03,07]-ib,x", "a,b[1-2]"]
    assert [first_host(n) for n in names] == ["rack1n3", "rack1n03-ib", "a"]


def test_each_gpu_belongs_to_one_process():
    second = ProcessInfo("Slurm", 1, 2, "a", 5000, 1, 2)
    assert _assigned_gpus(second, {}) == [1]
    assert _assigned_gpus(second, {"CUDA_VISIBLE_DEVICES": "0,1"}) == [1]
    assert _assigned_gpus(second, {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}) == [2, 3]
    assert _assigned_gpus(second, {"CUDA_VISIBLE_DEVICES": "1"}) is None  # given by the launcher
    assert _assigned_gpus(ProcessInfo("Slurm", 1, 2, "a", 5000), {}) is None  # alone on its machine


@pytest.mark.parametrize("per_task", ["2", "a100:2", "a100:1,v100:1"])
def test_gpus_of_a_task_are_all_its_own(per_task):
    """`srun --gpus-per-task=2`, with two tasks a machine."""
    second = ProcessInfo("Slurm", 1, 2, "a", 5000, 1, 2)
    slurm = {"SLURM_GPUS_PER_TASK": per_task}
    assert _assigned_gpus(second, {**slurm, "CUDA_VISIBLE_DEVICES": "2,3"}) is None
    assert _assigned_gpus(second, slurm) is None
    # With `--gpu-bind=none` each task sees the GPUs of all.
    assert _assigned_gpus(second, {**slurm, "CUDA_VISIBLE_DEVICES": "0,1,2,3"}) == [2, 3]


def test_processes_of_different_versions_are_refused():
    identity = {"physkit": "1", "jax": "2", "jaxlib": "2", "python": "3", "numpy": "4"}
    identity |= {"precision": "float32", "script": "a.py 00"}

    def introduction(k, identity):
        return {"process": k, "host": f"node{k}", "identity": identity}

    assert "refused" not in _jax_coordinator(
        [introduction(0, identity), introduction(1, dict(identity))], "localhost", 5000
    )
    answer = _jax_coordinator(
        [introduction(0, identity), introduction(1, {**identity, "jax": "9"}), introduction(2, {})],
        "localhost",
        5000,
    )
    assert "process 1 on node1 has jax 9, process 0 on node0 has 2" in answer["refused"]
    assert "and 3 more" in answer["refused"]


def test_the_port_of_the_coordinator_is_nobody_elses():
    with _reserved_port() as port, socket.socket() as other:
        with pytest.raises(OSError, match="in use"):
            other.bind(("", port))
        # As JAX's listener does it, for all addresses of both kinds.
        with socket.socket(socket.AF_INET6) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listener.bind(("::", port))
            listener.listen()
            with socket.create_connection(("localhost", port), timeout=10) as client:
                accepted, _ = listener.accept()
                accepted.sendall(b"x")
                assert client.recv(1) == b"x"
                accepted.close()

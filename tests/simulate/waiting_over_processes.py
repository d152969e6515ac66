"""A job whose processes differ, for `test_multiprocess_run.py`: by steps, by state, or one that never comes."""

import sys
import time


def main(difference: str) -> None:
    import physkit as pk
    from tests.simulate.diffusion_over_processes import case

    job = pk.parallel.initialize(wait=100)
    sim, state = case()
    steps = 10
    if difference == "steps":
        steps += 10 * job.process_index
    elif difference == "state":
        state = state + 1e-9 * job.process_index
    elif not job.is_first:
        print("sleeping", flush=True)
        time.sleep(100)
    print("running", flush=True)
    pk.run(sim, state, steps, devices=(2, 1), progress=False)


if __name__ == "__main__":
    main(sys.argv[1])

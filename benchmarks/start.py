"""What the first `run` of a system costs: CPU seconds and compiled programs, cold, in a process of its own.

`python -m benchmarks.start [case …] [--repeats N]`: nothing comes from a cache on disk; the least of N
processes counts. Of each case: import, building the system, its first run, and a run after that.
`--warm`: with `pk.use_compilation_cache` in an empty folder that a process before has filled. Programs that
are read from there count as well.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

# Name → (how the system is built, steps). Small sizes: what is measured does not depend on them.
CASES = {
    "lorenz": ("lorenz()", 100),
    "kepler": ("kepler()", 100),
    "spectral flow": ("taylor_green_2d(resolution=64)", 20),
    "gas": ("sod(100)", 20),
    "plasma": ("plasma_wave(count=2000, cells=32)", 20),
    "melt": ("lennard_jones_melt(5)", 20),
    "argon": ("liquid_argon(6)", 50),
}


def measure(build: str, steps: int, cache: str | None) -> dict[str, float]:
    """CPU seconds and programs of each stage, in this process; `cache`: a folder of compiled programs."""
    began = time.process_time()
    import jax

    jax.config.update("jax_compilation_cache_dir", None)
    programs = []

    def listen(event: str, seconds: float, **more: object) -> None:
        if event.endswith("backend_compile_duration"):
            programs.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(listen)
    import physkit as pk

    if cache is not None:
        pk.use_compilation_cache(cache)
    stages = {"import": time.process_time() - began}

    def timed(name: str, function):
        start, before = time.process_time(), len(programs)
        result = function()
        stages[name] = time.process_time() - start
        stages[f"{name} programs"] = len(programs) - before
        return result

    sim, state = timed("build", lambda: eval(f"systems.{build}", {"systems": pk.systems}))
    steps = -(-steps // sim.observation_period) * sim.observation_period
    timed("first run", lambda: pk.run(sim, state, steps, progress=False))
    timed("second run", lambda: pk.run(sim, state, steps, progress=False))
    return stages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; all if left out")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--warm", action="store_true", help="with programs from a cache on disk")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--cache", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(*CASES[args.cases[0]], args.cache)))
        return
    environment = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    stages = ("import", "build", "build programs", "first run", "first run programs", "second run")
    kind = "warm cache" if args.warm else "cold"
    print(f"| CPU seconds, {kind} | " + " | ".join(stages) + " |\n|---|" + "---|" * len(stages))
    for name in args.cases or CASES:
        command = [sys.executable, "-m", "benchmarks.start", name, "--measure"]
        with tempfile.TemporaryDirectory() as folder:
            if args.warm:
                command += ["--cache", folder]
            outputs = [
                subprocess.run(command, env=environment, check=True, capture_output=True).stdout
                for _ in range(args.repeats + args.warm)
            ]
        # With a cache, the first process filled it.
        runs = [json.loads(output) for output in outputs[args.warm :]]
        row = [f"{min(run[stage] for run in runs):.3g}" for stage in stages]
        print(f"| {name} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()

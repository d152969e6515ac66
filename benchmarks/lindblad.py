"""Lindblad's equation of three coupled transmons under pulses, by every code at the same error.

In the frame that turns with the drives, nanoseconds:

    H = Σ δₖ nₖ + ½ α a†ₖa†ₖaₖaₖ + J Σ (a†ₖaₖ₊₁ + h.c.) + Σ Ωₖ(t)/2 (aₖ + a†ₖ)

with Gaussian Ωₖ, and the jumps √(1/T₁) aₖ, √(2/T_φ) nₖ. Each code takes smaller and smaller steps, or
tolerances; what counts is the first whose ρ is within `ERROR` (Frobenius) of a reference by SciPy. Rates are
per CPU second.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks._harness import print_measurement

ERROR, DURATION, UNIT = 1e-6, 40.0, "runs/CPU s"
TURN = 2 * np.pi
DETUNINGS, ANHARMONICITY, COUPLING = TURN * np.array([0.0, 0.08, -0.05]), -0.3 * TURN, 0.01 * TURN
AMPLITUDES, CENTERS, WIDTH = TURN * np.array([0.04, 0.03, 0.02]), (16.0, 20.0, 24.0), 6.0
T1, T_PHI = 5e3, 8e3  # short, so that open evolution shows at this error
STEPS = [2**k for k in range(8, 18)]
TOLERANCES = [10.0**-k for k in range(4, 12)]


def single(levels: int) -> tuple[np.ndarray, np.ndarray]:
    """The annihilation operator and what α multiplies."""
    n = np.arange(levels)
    return np.diag(np.sqrt(n[1:]), 1), np.diag(0.5 * n * (n - 1))


def pulse(t: Any, k: int, exp: Callable) -> Any:
    """Ωₖ(t) / 2."""
    return 0.5 * float(AMPLITUDES[k]) * exp(-0.5 * ((t - CENTERS[k]) / WIDTH) ** 2)


def matrices(levels: int) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """The constant Hamiltonian, what each pulse drives, and the jumps, on all three."""
    a, bend = single(levels)
    one = np.eye(levels)

    def on(matrix: np.ndarray, k: int) -> np.ndarray:
        parts = [matrix if j == k else one for j in range(3)]
        return np.kron(np.kron(parts[0], parts[1]), parts[2])

    lower = [on(a, k) for k in range(3)]
    h = sum(DETUNINGS[k] * lower[k].T @ lower[k] + ANHARMONICITY * on(bend, k) for k in range(3))
    for k in range(2):
        h = h + COUPLING * (lower[k].T @ lower[k + 1] + lower[k + 1].T @ lower[k])
    jumps = [x / np.sqrt(T1) for x in lower] + [np.sqrt(2 / T_PHI) * x.T @ x for x in lower]
    return h, [x + x.T for x in lower], jumps


def reference(levels: int) -> np.ndarray:
    """ρ at the end, by an eighth-order method of SciPy's at 1e-11."""
    from scipy.integrate import solve_ivp

    h, drives, jumps = matrices(levels)
    loss = 0.5 * sum(x.T @ x for x in jumps)
    size = len(h)

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        rho = y.reshape(size, size)
        now = h + sum(pulse(t, k, np.exp) * x for k, x in enumerate(drives))
        left = (-1j * now - loss) @ rho
        return (left + left.conj().T + sum(x @ rho @ x.T for x in jumps)).reshape(-1)

    start = np.zeros(size**2, complex)
    start[0] = 1
    return solve_ivp(rate, (0, DURATION), start, "DOP853", rtol=1e-11, atol=1e-13).y[:, -1]


def fastest(
    levels: int, choices: Sequence, prepare: Callable[[Any], Callable[[], np.ndarray]]
) -> dict:
    """The first of `choices` that is accurate enough: its rate."""
    expected = reference(levels)
    for choice in choices:
        began = time.perf_counter()
        run = prepare(choice)
        error = np.linalg.norm(run().reshape(-1) - expected)
        first = time.perf_counter() - began
        if error <= ERROR:
            break
    else:
        raise RuntimeError(f"error {error:.2g} at {choice}")
    best, spent = 0.0, 0.0
    for _ in range(5):
        began = time.process_time()
        run()
        took = time.process_time() - began
        best, spent = max(best, 1 / took), spent + took
        if spent > 20:  # a slow code is not measured for minutes
            break
    note = f"error {error:.1e} by " + (f"{choice} steps" if choice > 1 else f"tolerance {choice}")
    return {"rate": best, "unit": UNIT, "first": first, "note": note}


def with_physkit(size: int, precision: str) -> dict:
    import jax
    import jax.numpy as jnp

    import physkit as pk
    from physkit import quantum as q

    del precision  # the environment's jax_enable_x64 decides
    a, bend = single(size)
    h = COUPLING * q.LocalOperator(np.kron(a.T, a) + np.kron(a, a.T), 0, 1)
    h = h + COUPLING * q.LocalOperator(np.kron(a.T, a) + np.kron(a, a.T), 1, 2)
    jumps = []
    for k in range(3):
        h = h + q.LocalOperator(DETUNINGS[k] * a.T @ a + ANHARMONICITY * bend, k)
        h = h + q.LocalOperator(a + a.T, k).driven(lambda t, k=k: pulse(t, k, jnp.exp))
        jumps += [
            q.Jump(q.LocalOperator(a, k), 1 / T1),
            q.Jump(q.LocalOperator(a.T @ a, k), 2 / T_PHI),
        ]
    system = q.Lindblad(h, *jumps)
    start = q.DensityMatrix.basis((size,) * 3)

    def prepare(steps: int) -> Callable[[], np.ndarray]:
        simulation = pk.Simulation(pk.RK4(system), dt=DURATION / steps)
        advance = jax.jit(lambda rho: pk.simulate(simulation, rho, steps).state.elements)
        compiled = advance.lower(start).compile()
        return lambda: np.asarray(compiled(start))

    return fastest(size, STEPS, prepare)


def with_dynamiqs(method: str, layout: str) -> Callable[[int, str], dict]:
    def measure(size: int, precision: str) -> dict:
        import dynamiqs as dq
        import jax.numpy as jnp

        dq.set_precision({"float32": "single", "float64": "double"}[precision])
        as_operator = lambda x: dq.asqarray(x, dims=(size,) * 3, layout=getattr(dq, layout))
        constant, drives, jumps = matrices(size)
        h = dq.constant(as_operator(constant))
        for k, drive in enumerate(drives):
            h = h + dq.modulated(lambda t, k=k: pulse(t, k, jnp.exp), as_operator(drive))
        jumps = [as_operator(x) for x in jumps]
        start = dq.basis_dm((size,) * 3, (0, 0, 0))
        is_fixed = method in ("Euler", "Rouchon2", "Rouchon3")

        def prepare(choice: float) -> Callable[[], np.ndarray]:
            kind = getattr(dq.method, method)
            chosen = (
                kind(dt=DURATION / choice)
                if is_fixed
                else kind(rtol=choice, atol=choice, max_steps=10**6)
            )
            times = jnp.array([0.0, DURATION])

            def run() -> np.ndarray:
                found = dq.mesolve(
                    h, jumps, start, times, method=chosen,
                    progress_meter=False, save_states=False,
                )  # fmt: skip
                return np.asarray(found.final_state.to_jax())

            return run

        return fastest(size, STEPS if is_fixed else TOLERANCES, prepare)

    return measure


def with_qutip(method: str) -> Callable[[int, str], dict]:
    def measure(size: int, precision: str) -> dict:
        import qutip

        del precision  # always double
        dims = [[size] * 3] * 2
        constant, drives, jumps = matrices(size)
        h = [qutip.Qobj(constant, dims=dims)]
        for k, drive in enumerate(drives):
            h.append([qutip.Qobj(drive, dims=dims), lambda t, k=k: pulse(t, k, np.exp)])
        h = qutip.QobjEvo(h)
        jumps = [qutip.Qobj(x, dims=dims) for x in jumps]
        start = qutip.ket2dm(qutip.basis([size] * 3, [0, 0, 0]))

        def prepare(tolerance: float) -> Callable[[], np.ndarray]:
            options = {
                "method": method,
                "rtol": tolerance,
                "atol": tolerance,
                "nsteps": 10**6,
                "progress_bar": "",
            }
            return lambda: (
                qutip.mesolve(h, start, [0, DURATION], jumps, options=options).states[-1].full()
            )

        return fastest(size, TOLERANCES[2:], prepare)  # of seconds each: none is tried in vain

    return measure


if __name__ == "__main__":
    print_measurement(
        {
            "physkit": with_physkit,
            "dynamiqs-rouchon2": with_dynamiqs("Rouchon2", "dia"),
            "dynamiqs-rouchon3": with_dynamiqs("Rouchon3", "dia"),
            "dynamiqs-rouchon3-dense": with_dynamiqs("Rouchon3", "dense"),
            "dynamiqs-tsit5": with_dynamiqs("Tsit5", "dia"),
            "dynamiqs-tsit5-dense": with_dynamiqs("Tsit5", "dense"),
            "qutip-adams": with_qutip("adams"),
            "qutip-vern7": with_qutip("vern7"),
        }
    )

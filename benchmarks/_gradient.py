"""Time and memory of value and gradient against the value alone, for one adjoint."""

import time

from benchmarks._harness import ALL_CORES, seconds

UNIT = "gradient steps/s"


def adjoints() -> dict:
    """The adjoints by the names of the command line."""
    import physkit as pk

    return {
        "direct": pk.adjoints.Direct(),
        "nested": pk.NestedCheckpoint(),
        "binomial": pk.adjoints.Binomial(10),
        "reversible": pk.Reversible(),
    }


def measure_gradient(loss, at, steps: int) -> dict:
    """`loss(at)` and its gradient, compiled; times are the best of three."""
    import jax

    options = ALL_CORES if jax.default_backend() == "cpu" else None
    compiled = lambda f: jax.jit(f, compiler_options=options).lower(at).compile()
    began = time.perf_counter()
    with_gradient = compiled(jax.value_and_grad(loss))
    compiling = time.perf_counter() - began
    forward = compiled(loss)
    began = time.perf_counter()
    value, slope = jax.block_until_ready(with_gradient(at))
    first = time.perf_counter() - began
    jax.block_until_ready(forward(at))
    slow = seconds(lambda: jax.block_until_ready(with_gradient(at)))
    fast = seconds(lambda: jax.block_until_ready(forward(at)))
    memory = with_gradient.memory_analysis().temp_size_in_bytes / 2**20
    note = (
        f"{slow / fast:.2f}× forward ({fast:.3g} s), {memory:.4g} MiB, dL/dθ = "
        f"{float(jax.tree.leaves(slope)[0]):.7g} at L = {float(value):.7g}"
    )
    return {"rate": steps / slow, "unit": UNIT, "compile": compiling, "first": first, "note": note}


def codes(with_adjoint) -> dict:
    """A measurement per adjoint, each `with_adjoint(adjoint, size)`."""

    def one(name):
        return lambda size, precision: with_adjoint(adjoints()[name], size)

    return {name: one(name) for name in ("direct", "nested", "binomial", "reversible")}

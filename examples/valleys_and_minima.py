"""Two losses that searches are measured by, in ten dimensions: a bent valley, and a thousand million minima.

Rosenbrock's valley is one minimum at the end of a long bend: CMA-ES learns its direction. Rastrigin's function
has a minimum in every cell of a lattice: populations that double at each restart see past them.
"""

import os
import warnings

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()
QUICK = "PHYSKIT_QUICK" in os.environ
DIMENSIONS = 10
STYLES = {
    "CMA-ES": {"color": "#0072B2"},
    "CMA-ES, one run": {"color": "#56B4E9", "lw": 4, "alpha": 0.6},
    "CMA-ES, restarts": {"color": "#0072B2"},
    "differential evolution": {"color": "#D55E00"},
}


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def rastrigin(x):
    return jnp.sum(x**2 - 10 * jnp.cos(2 * jnp.pi * x) + 10)


most = {"max_generations": 20} if QUICK else {"max_generations": 4000}
evolution = pk.fitting.DifferentialEvolution(
    sigma=2.0, population=64, target=1e-8, max_generations=20 if QUICK else 1000
)
searches = {
    "Rosenbrock": (
        rosenbrock,
        jnp.asarray(np.zeros(DIMENSIONS)),
        {
            "CMA-ES": pk.fitting.CMAES(sigma=0.3, restarts=2, target=1e-8, **most),
            "differential evolution": evolution,
        },
    ),
    "Rastrigin": (
        rastrigin,
        jnp.asarray(np.linspace(-4.0, 3.0, DIMENSIONS)),
        {
            "CMA-ES, one run": pk.fitting.CMAES(sigma=2.0, target=1e-8, **most),
            "CMA-ES, restarts": pk.fitting.CMAES(sigma=2.0, restarts=7, target=1e-8, **most),
            "differential evolution": evolution,
        },
    ),
}
with pk.plot.style():
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharey=True)
    for ax, (title, (loss, start, methods)) in zip(axes, searches.items(), strict=True):
        for name, method in methods.items():
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", UserWarning
                )  # a search that ends elsewhere is shown, too
                found = pk.fit(
                    loss, start, where=lambda x: x, bounds=pk.bounds.Unbounded(1.0), method=method,
                    key=0, progress=False,
                )  # fmt: skip
            history = found.history
            print(f"{title}, {name}: {found.loss:.1e} after {history.evaluations[-1]} evaluations")
            ax.loglog(
                history.evaluations, np.maximum(history.loss, 1e-9), label=name, **STYLES[name]
            )
        ax.set(xlabel="evaluations", title=title, ylim=(3e-10, None))
        ax.legend(frameon=False)
    axes[0].set_ylabel("lowest loss")
    figure.savefig("valleys_and_minima.png", dpi=130)

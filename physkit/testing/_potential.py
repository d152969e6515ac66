"""`check_potential`: a pair potential's force, derivatives, shapes and tables."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.core import PyTree, cast_floats, explain_call
from physkit.particles.forces import AbstractPairPotential

from ._compare import check_equal, check_finite, check_structure, double_precision
from ._gradient import check_gradient
from ._trees import check_batch, check_no_numbers_in_static, perturb, require_traceable


@explain_call
@double_precision()
def check_potential(
    potential: AbstractPairPotential,
    radii: ArrayLike | Sequence[float],
    *,
    ignore: Sequence[str] = (),
) -> None:
    """A pair potential keeps every promise that pair forces build on.

        check_potential(LennardJones(), [0.9, 1.0, 1.5, 2.5])

    Energy and force are finite at all `radii`; `force_over_distance` is −(dU/dr)/r; derivatives by
    distance and by every parameter equal finite differences; shapes and precision are kept; float32
    is near float64; `vmap` over radii and over parameters equals a loop; and tables per pair of
    species, read through `between`, equal scalar potentials.

    **Arguments:**

    - `radii`: distances, length, where the potential must be smooth: none on a kink.
    - `ignore`: parameters that may have no effect at these distances.

    **Errors:** `AssertionError` that names what is wrong, by how much, and where.
    """
    what = type(potential).__name__
    check_no_numbers_in_static(potential, what, ignore)
    potential = cast_floats(potential, jnp.float64)
    r = jnp.asarray(radii, jnp.float64).reshape(-1)
    pairs = _scalar_pairs(potential)
    for where, scalar in pairs:
        _check_scalar(scalar, r, f"{what}{where}", ignore)
    _check_tables(potential, r, what)


def _check_scalar(
    potential: AbstractPairPotential, r: ArrayLike, what: str, ignore: Sequence[str]
) -> None:
    energy = require_traceable(lambda p, x: p.energy(x), f"{what}.energy")
    force = require_traceable(
        lambda p, x: p.force_over_distance(x * x), f"{what}.force_over_distance"
    )
    u, f = energy(potential, r), force(potential, r)
    for value, name in ((u, "energy"), (f, "force_over_distance")):
        check_structure(value, r, f"{what}.{name} of [{r.size}] distances")
        check_finite(value, f"{what}.{name}")
    slope = jax.jvp(lambda x: potential.energy(x), (r,), (jnp.ones_like(r),))[1]  # dU/dr
    check_finite(slope, f"{what}: the derivative of energy")
    check_equal(f, -slope / r, f"{what}.force_over_distance against −(dU/dr)/r", "gradient")

    def energy_and_force(at):
        return {
            "energy": at["potential"].energy(at["r"]),
            "force_over_distance": at["potential"].force_over_distance(at["r"] ** 2),
        }

    check_gradient(energy_and_force, {"potential": potential, "r": r}, ignore=ignore, what=what)

    # (radii, 2): kernels call potentials with blocks of [rows, neighbors].
    grid = r[:, None] + jnp.zeros((1, 2))
    for function, value, name in ((energy, u, "energy"), (force, f, "force_over_distance")):
        on_grid = function(potential, grid)
        check_structure(on_grid, grid, f"{what}.{name} of [{r.size} 2] distances")
        check_equal(on_grid[:, 0], value, f"{what}.{name} of [n 2] against [n] distances", "sum")
        # Element by element: a potential may not let one distance depend on the others.
        one_by_one = jnp.stack([function(potential, x) for x in r])
        check_equal(value, one_by_one, f"{what}.{name} of an array against a loop", "sum")
        low = function(cast_floats(potential, jnp.float32), r.astype(jnp.float32))
        check_structure(low, r.astype(jnp.float32), f"{what}.{name} in float32")
        check_finite(low, f"{what}.{name} in float32")
        check_equal(low, value, f"{what}.{name} in float32 against float64", "precision")
    members = [{"potential": perturb(potential, seed, 1e-3), "r": r} for seed in range(3)]
    check_batch(energy_and_force, members, what, "sum")


def _check_tables(potential: AbstractPairPotential, r: ArrayLike, what: str) -> None:
    """Tables `[2 2]` made of the potential's scalars, looked up, equal the scalar potentials."""
    # Networks and tables of their own have no scalars to tabulate.
    names = [n for n, x in _array_fields(potential).items() if x.ndim == 0]
    if not names or not hasattr(potential, "between") or potential.species is not None:
        return
    # Near 1, so that radii stay where the potential is smooth; symmetric, as the pair ij is ji.
    factors = jnp.array([[1.0, 1.02], [1.02, 1.05]])
    table = _replace_arrays(potential, {n: getattr(potential, n) * factors for n in names})
    i, j = jnp.array([0, 0, 1, 1]), jnp.array([0, 1, 0, 1])
    pairs = table.between(i, j)
    for name in ("energy", "force_over_distance"):
        x = r if name == "energy" else r * r  # forces take the squared distance
        looked_up = jnp.stack([getattr(pairs, name)(jnp.full(4, v, x.dtype)) for v in x])
        scalars = [
            _replace_arrays(potential, {n: getattr(potential, n) * factors[a, b] for n in names})
            for a, b in zip(i, j, strict=True)
        ]
        separate = jnp.stack([getattr(s, name)(x) for s in scalars], axis=1)  # (radii, pairs)
        check_equal(looked_up, separate, f"{what}.between(i, j).{name} of tables", "sum")


def _scalar_pairs(potential: AbstractPairPotential) -> list[tuple[str, Any]]:
    """The potential of every pair of species, or the potential itself."""
    species = getattr(potential, "species", None)
    if species is None:
        return [("", potential)]
    return [
        (f" between species {i} and {j}", potential.between(jnp.array(i), jnp.array(j)))
        for i in range(species)
        for j in range(i, species)
    ]


def _array_fields(module: PyTree) -> dict[str, Any]:
    fields = {f.name: getattr(module, f.name, None) for f in dataclasses.fields(module)}
    return {name: x for name, x in fields.items() if eqx.is_inexact_array(x)}


def _replace_arrays(module: PyTree, values: dict[str, Any]) -> Any:
    names = list(values)
    return eqx.tree_at(
        lambda m: [getattr(m, n) for n in names],
        module,
        [jnp.asarray(values[n], np.float64) for n in names],
    )

"""`check_force`: a force against its energy, symmetries and derivatives."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.core import (
    DeclarationError,
    Module,
    NoEnergyError,
    State,
    describe,
    explain_call,
    get_component,
    put_component,
)
from physkit.particles import Particles
from physkit.particles.forces import AbstractForce

from ._compare import check_equal, check_finite, double_precision
from ._perturbed_states import (
    allows_any_strain,
    perturb_positions,
    reorder,
    strain_state,
    translate,
)
from ._term import Examination
from ._trees import as_array_like, explain_untraceable, random_like

_EPSILON = float(np.finfo(np.float64).eps)
# Below this part of the forces on slightly displaced particles, a state counts as in equilibrium.
_EQUILIBRIUM = 1e-3


@explain_call
@double_precision()
def check_force(
    force: Module,
    state: State,
    *,
    t: float | int = 0.0,
    key: jax.Array | None = None,
    ignore: Sequence[str] = (),
    permutable: bool | None = None,
    noise: float = _EPSILON,
    compare: str = "sum",
) -> None:
    """A force keeps every promise that integrators, observers and fits build on.

        check_force(Pairwise(LennardJones(), cutoff=2.5), state)

    In double precision (whatever precision `state` is in): the value is finite; compiled equals not
    compiled; the cache keeps its structure, and a carried one gives what a fresh one gives, after
    small and large moves; float32 is near float64; `vmap` equals a loop; the force is −∂E/∂x;
    derivatives of force and energy by every parameter and by every leaf of the state equal finite
    differences, in forward and reverse mode; Hessian-vector products agree in all three orders of
    differentiation; a force that conserves momentum adds up to 0, does not change when everything
    is translated, and has the virial that is the energy's derivative by strain; and another order
    of the particles gives the same forces in that order.

    **Arguments:**

    - `state`: particles (or a dict of components) far from where the force is not smooth. In
      equilibrium (a perfect crystal) forces cancel to rounding: particles are then displaced by some 2 % of
      their spacing first.
    - `t`, `key`: time and random key of the clock that the force is called with.
    - `ignore`: names of parameters that may have no effect here.
    - `permutable`: whether particles are interchangeable; if left out, when the force holds no
      integers (as bonds do).
    - `noise`, `compare`: relative round-off of the values, and the row of the tolerance table for
      the same value reached in two ways, where they are not those of float64 sums.

    **Errors:** `AssertionError` that names what is wrong, by how much, and where; `DeclarationError` for
    what is no force.
    """
    if not isinstance(force, AbstractForce):
        raise DeclarationError(
            f"check_force(force, state) examines one force; got {describe(force)}. Terms of a sum are checked "
            "one by one, potentials by check_potential, rates by check_tendency"
        )
    exam = _ForceExamination(force, state, t, key, ignore)
    exam.check_energy()
    exam.run_all(ignore=ignore, noise=noise, compare=compare)
    exam.check_hessian()
    if exam.term.conserves_momentum:
        exam.check_momentum(compare)
        exam.check_virial()
    if permutable is None:
        permutable = not any(jnp.issubdtype(x.dtype, jnp.integer) for x in jax.tree.leaves(force))
    if permutable:
        exam.check_order(compare)


class _ForceExamination(Examination):
    """What a force promises beyond being a term."""

    def __init__(self, force, state, t, key, ignore):
        super().__init__(force, state, t, key, ignore)
        value = self.value(self.term, self.state, self.cache)
        moved = perturb_positions(self.state, self.seed)
        nearby = self.value(self.term, moved, self.init_cache(self.term, moved))
        if _largest(value) < _EQUILIBRIUM * _largest(nearby):
            # All forces cancel to the rounding of their terms, and nothing can be compared with what is left.
            self.state, self.cache = moved, self.init_cache(self.term, moved)
            value = nearby
        self.bodies = get_component(self.state, self.term.component)
        expected = self.bodies.generalized_velocity.shape
        if jnp.shape(value) != expected:
            raise AssertionError(
                f"{self.what}: a force must have the shape of the positions, of rigid bodies [n 6]: "
                f"{list(expected)}; "
                f"got {list(jnp.shape(value))}"
            )
        # Abstract evaluation: only whether there is an energy, not what it is.
        try:
            jax.eval_shape(lambda: self.term.energy(self.clock, self.state, self.cache))
            self.has_energy = True
        except NoEnergyError:
            self.has_energy = False

    def more_outputs(self, term, state):
        if not self.has_energy:
            return {}
        return {"energy": term.energy(self._clock_like(state), state, self.cache)}

    def comparisons(self, compare: str) -> dict[str, str]:
        if compare != "same":
            return {"value": compare, "energy": compare}
        # Sums that do not depend on their order are of pair forces as the compiler rounds them: a batch is
        # another program, with other fused operations. Energies are plain sums.
        return {"value": "round-off", "energy": "sum"}

    @property
    def coordinates(self) -> Any:
        """What a force is the derivative by: positions, or how rigid bodies are moved and turned from here."""
        is_points = isinstance(self.bodies, Particles)
        return (
            self.bodies.position if is_points else jnp.zeros(self.bodies.generalized_velocity.shape)
        )

    def energy_at(self, coordinates: ArrayLike) -> Any:
        """The energy as a function of the coordinates."""
        return self.term.energy(self.clock, self._state_at(coordinates), self.cache)

    def _state_at(self, coordinates: ArrayLike) -> Any:
        is_points = isinstance(self.bodies, Particles)
        bodies = self.bodies
        moved = bodies.replace(position=coordinates) if is_points else bodies.displace(coordinates)
        return put_component(self.state, self.term.component, moved)

    def check_energy(self) -> None:
        """The force is −∂E/∂x, and the energy is the same with and without a cache."""
        if not self.has_energy:
            return
        x = self.coordinates
        shape = jax.eval_shape(explain_untraceable(self.energy_at, f"{self.what}.energy"), x).shape
        if shape != ():
            raise AssertionError(f"{self.what}.energy must be one number; got shape {list(shape)}")

        @jax.jit
        def energies(x):
            uncached = self.term.energy(self.clock, self._state_at(x))
            return self.energy_at(x), uncached, jax.grad(self.energy_at)(x)

        energy, uncached, gradient = energies(x)
        check_finite(energy, f"{self.what}.energy")
        check_finite(gradient, f"{self.what}: ∂energy/∂position")
        value = self.value(self.term, self.state, self.cache)
        check_equal(
            value, -gradient, f"{self.what}: the force against −∂energy/∂position", "gradient"
        )
        check_equal(uncached, energy, f"{self.what}.energy without a cache against with one", "sum")

    def check_hessian(self) -> None:
        """H·v by forward over reverse, reverse over reverse and reverse over forward."""
        if not self.has_energy:
            return
        x = self.coordinates
        v = as_array_like(x, random_like(x, self.seed))
        gradient = jax.grad(self.energy_at)

        def gradient_along(x):
            return jnp.sum(gradient(x) * v)

        def slope_along(x):
            return jax.jvp(self.energy_at, (x,), (v,))[1]

        # Custom derivative rules may be right in one order of modes and wrong in another.
        products = {
            "reverse over reverse": jax.grad(gradient_along),
            "reverse over forward": jax.grad(slope_along),
        }

        def force_at(x):
            return self.term(self.clock, self._state_at(x), self.cache)[0]

        @jax.jit
        def differentiate(x):
            expected = jax.jvp(gradient, (x,), (v,))[1]
            # The force may have a derivative rule of its own, apart from that of the energy.
            change = jax.jvp(force_at, (x,), (v,))[1]
            return expected, {modes: product(x) for modes, product in products.items()}, change

        expected, computed, change = differentiate(x)
        check_finite(expected, f"{self.what}: the Hessian of the energy times a vector")
        for modes, product in computed.items():
            name = f"{self.what}: Hessian times vector, {modes} against forward over reverse"
            check_equal(product, expected, name, "gradient")
        if not isinstance(self.bodies, Particles):
            return  # turns do not commute: the derivative of a torque is no Hessian
        name = f"{self.what}: the force's derivative against minus the Hessian of the energy"
        check_equal(change, -expected, name, "gradient")

    def check_momentum(self, compare: str) -> None:
        """No net force, and no dependence on where everything is."""
        value = self.value(self.term, self.state, self.cache)
        # The sum of n forces cancels to the round-off of their magnitudes, not to that of itself.
        magnitude = float(np.sum(np.abs(np.asarray(value))))
        net = np.sum(np.asarray(value), axis=0)[: self.bodies.dimension]  # without torques
        check_equal(
            net,
            np.zeros_like(net),
            f"{self.what} says that it conserves momentum: the sum of all forces",
            floor=1e-12 * magnitude,
        )
        state = translate(self.state, self.seed)
        translated = self.value(self.term, state, self.init_cache(self.term, state))
        name = f"{self.what} conserves momentum: the force after translating all particles"
        check_equal(translated, value, name, "solve")

    def check_virial(self) -> None:
        """W_ab = −∂E/∂ε_ba, where ε strains particles and cell alike."""
        if not self.has_energy:
            return
        particles = get_component(self.state, self.term.component)
        d = particles.dimension

        def strained_energy(strain):
            # No cache: its lists and cells are of the unstrained box.
            return self.term.energy(self.clock, strain_state(self.state, strain))

        def virials(coordinates, strain):
            state = self._state_at(coordinates)
            with_cache = self.term.virial(self.clock, state, self.cache)
            without = self.term.virial(self.clock, state)
            return with_cache, without, -jax.grad(strained_energy)(strain).T

        computed, uncached, expected = map(
            np.asarray, jax.jit(virials)(self.coordinates, np.zeros((d, d)))
        )
        check_equal(computed, uncached, f"{self.what}.virial with a cache against without", "sum")
        # A rectangular box cannot be sheared: only the diagonal of its strain means anything.
        if not allows_any_strain(particles.space):
            computed, expected = np.diagonal(computed), np.diagonal(expected)
        name = f"{self.what}.virial against minus the derivative of energy by strain"
        check_equal(computed, expected, name, "gradient")

    def check_order(self, compare: str) -> None:
        """Particles in another order have the same forces in that order."""
        particles = get_component(self.state, self.term.component)
        order = np.random.default_rng(self.seed).permutation(particles.num_particles)
        state = put_component(self.state, self.term.component, reorder(particles, order))
        computed = self.value(self.term, state, self.init_cache(self.term, state))
        expected = np.asarray(self.value(self.term, self.state, self.cache))[order]
        name = f"{self.what}: the force on particles in another order"
        # Sums over neighbors run in another order: never bit for bit.
        check_equal(computed, expected, name, "sum" if compare == "same" else compare)


def _largest(value: Any) -> float:
    """The largest magnitude in any leaf."""
    leaves = jax.tree.leaves(value)
    return max((float(np.max(np.abs(np.asarray(x)), initial=0.0)) for x in leaves), default=0.0)

"""`check_force`: a force against its energy, symmetries and derivatives."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import (
    DeclarationError,
    Module,
    NoEnergyError,
    PyTree,
    State,
    describe,
    explain_call,
    get_component,
    put_component,
)
from physkit.particles import Particles
from physkit.particles.forces import AbstractForce

from ._compare import check_equal, check_finite, double_precision
from ._energy_and_virial import check_heat_flux, check_particle_energies, check_virial
from ._perturbed_states import perturb_positions, reorder, translate
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
    differentiation; a force that conserves momentum adds up to 0 and does not change when everything
    is translated; a virial is the energy's derivative by strain, or 0 for a force from outside;
    energies of particles add up to the energy, and in free space the heat flux is what they say;
    and another order of the particles gives the same forces in that order.

    **Arguments:**

    - `state`: particles (or a dict of components) far from where the force is not smooth; in a box, caches
      are carried to a slightly larger one, too. In
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
    exam = ForceExamination(force, state, t, key, ignore)
    exam.check_energy()
    exam.run_all(ignore=ignore, noise=noise, compare=compare)
    exam.check_hessian()
    if exam.term.conserves_momentum:
        exam.check_momentum(compare)
    if exam.has_energy:
        check_virial(exam)
        check_particle_energies(exam)
        check_heat_flux(exam)
    if permutable is None:
        permutable = not any(jnp.issubdtype(x.dtype, jnp.integer) for x in jax.tree.leaves(force))
    if permutable:
        exam.check_order(compare)


class ForceExamination(Examination):
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
        # By name where it names components: then its value is a dict of forces.
        names = list(value) if isinstance(value, dict) else [self.term.component]
        self.bodies = {name: get_component(self.state, name) for name in names}
        self.names_components = isinstance(value, dict)
        for name, force in (value if self.names_components else {names[0]: value}).items():
            expected = self.bodies[name].generalized_velocity.shape
            if jnp.shape(force) != expected:
                raise AssertionError(
                    f"{self.what}: a force must have the shape of the positions, of rigid bodies [n 6]: "
                    f"{list(expected)}; "
                    f"got {list(jnp.shape(force))}"
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
        by_name = {
            name: bodies.position
            if isinstance(bodies, Particles)
            else jnp.zeros(bodies.generalized_velocity.shape)
            for name, bodies in self.bodies.items()
        }
        return by_name if self.names_components else by_name[self.term.component]

    def energy_at(self, coordinates: PyTree) -> Any:
        """The energy as a function of the coordinates."""
        return self.term.energy(self.clock, self.state_at(coordinates), self.cache)

    def state_at(self, coordinates: PyTree) -> Any:
        """The state with bodies at these coordinates."""
        by_name = coordinates if self.names_components else {self.term.component: coordinates}
        state = self.state
        for name, bodies in self.bodies.items():
            to = by_name[name]
            is_points = isinstance(bodies, Particles)
            moved = bodies.replace(position=to) if is_points else bodies.displace(to)
            state = put_component(state, name, moved)
        return state

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
            uncached = self.term.energy(self.clock, self.state_at(x))
            return self.energy_at(x), uncached, jax.grad(self.energy_at)(x)

        energy, uncached, gradient = energies(x)
        check_finite(energy, f"{self.what}.energy")
        check_finite(gradient, f"{self.what}: ∂energy/∂position")
        value = self.value(self.term, self.state, self.cache)
        check_equal(
            value,
            jax.tree.map(jnp.negative, gradient),
            f"{self.what}: the force against −∂energy/∂position",
            "gradient",
        )
        check_equal(uncached, energy, f"{self.what}.energy without a cache against with one", "sum")

    def check_hessian(self) -> None:
        """H·v by forward over reverse, reverse over reverse and reverse over forward."""
        if not self.has_energy:
            return
        x = self.coordinates
        v = jax.tree.map(lambda x: as_array_like(x, random_like(x, self.seed)), x)
        gradient = jax.grad(self.energy_at)

        def gradient_along(x):
            products = jax.tree.map(lambda slope, v: jnp.sum(slope * v), gradient(x), v)
            return jax.tree.reduce(jnp.add, products)

        def slope_along(x):
            return jax.jvp(self.energy_at, (x,), (v,))[1]

        # Custom derivative rules may be right in one order of modes and wrong in another.
        products = {
            "reverse over reverse": jax.grad(gradient_along),
            "reverse over forward": jax.grad(slope_along),
        }

        def force_at(x):
            return self.term(self.clock, self.state_at(x), self.cache)[0]

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
        if not all(isinstance(bodies, Particles) for bodies in self.bodies.values()):
            return  # turns do not commute: the derivative of a torque is no Hessian
        name = f"{self.what}: the force's derivative against minus the Hessian of the energy"
        check_equal(change, jax.tree.map(jnp.negative, expected), name, "gradient")

    def check_momentum(self, compare: str) -> None:
        """No net force, and no dependence on where everything is."""
        value = self.value(self.term, self.state, self.cache)
        forces = [np.asarray(force) for force in jax.tree.leaves(value)]
        # The sum of n forces cancels to the round-off of their magnitudes, not to that of itself.
        magnitude = sum(float(np.sum(np.abs(force))) for force in forces)
        dimension = get_component(self.state, self.term.component).dimension
        net = sum(np.sum(force, axis=0)[:dimension] for force in forces)  # without torques
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

    def check_order(self, compare: str) -> None:
        """Particles in another order have the same forces in that order."""
        generator = np.random.default_rng(self.seed)
        state, orders = self.state, {}
        for component, bodies in self.bodies.items():
            orders[component] = generator.permutation(len(bodies.position))
            state = put_component(state, component, reorder(bodies, orders[component]))
        computed = self.value(self.term, state, self.init_cache(self.term, state))
        value = self.value(self.term, self.state, self.cache)
        if self.names_components:
            expected = {name: np.asarray(value[name])[order] for name, order in orders.items()}
        else:
            expected = np.asarray(value)[orders[self.term.component]]
        name = f"{self.what}: the force on particles in another order"
        # Sums over neighbors run in another order: never bit for bit.
        check_equal(computed, expected, name, "sum" if compare == "same" else compare)


def _largest(value: Any) -> float:
    """The largest magnitude in any leaf."""
    leaves = jax.tree.leaves(value)
    return max((float(np.max(np.abs(np.asarray(x)), initial=0.0)) for x in leaves), default=0.0)

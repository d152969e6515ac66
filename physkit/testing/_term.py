"""Checks of every term with a cache, be it a force or a tendency."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import (
    AbstractTerm,
    Cache,
    Clock,
    Fault,
    ParameterError,
    State,
    StepCount,
    cast_floats,
    collect_faults,
    grow_caches,
    has_overflow,
)

from ._compare import check_equal, check_finite, check_structure, leaves_by_name
from ._gradient import check_gradient
from ._perturbed_states import grow_cells, has_cell, perturb_positions, squeeze
from ._trees import (
    check_batch,
    check_no_numbers_in_static,
    compiled,
    parameter_paths,
    perturb,
    require_traceable,
    symmetrize_tables,
)

_MAX_GROWTHS = 5  # each by a quarter at least: far beyond what a perturbed state needs


class Examination:
    """One term, in double precision, on one state, with a cache of sufficient capacity."""

    def __init__(
        self,
        term: AbstractTerm,
        state: State,
        t: float | int,
        key: jax.Array | None,
        ignore: Sequence[str] = (),
    ):
        self.what = type(term).__name__
        check_no_numbers_in_static(term, self.what, ignore)
        self.term, self.state = cast_floats((term, state), jnp.float64)
        self.clock = Clock.at(StepCount.of(0), float(t), 0.01, key)
        self.seed = 5  # any; fixed, so that a failure repeats
        self.compiled = require_traceable(_call, self.what)
        self.outputs = compiled(self._outputs)
        self.overflows = jax.jit(has_overflow)
        self.cache = self.init_cache(self.term, self.state)
        # The state in a larger cell, if it may live there, and the cache that was carried there.
        self.takes_other_cells = True
        self.in_larger_cell: tuple[State, Cache] | None = None

    def init_cache(self, term: AbstractTerm, state: State) -> Any:
        """A new cache for `state`, grown until nothing overflows."""
        cache = term.init(state)
        clock = self._clock_like(state)
        for _ in range(_MAX_GROWTHS):
            after = self.compiled(term, clock, state, cache)[1]
            if not self.overflows(after):
                self._check_faults(after)
                return cache
            cache, events = grow_caches(cache, after)
            if not events:
                break
        raise AssertionError(f"{self.what}: its cache overflows, and growing it does not help")

    def value(self, term: AbstractTerm, state: State, cache: Cache) -> Any:
        """The term's value, compiled."""
        return self.compiled(term, self._clock_like(state), state, cache)[0]

    def run_all(self, *, ignore: Sequence[str], noise: float, compare: str) -> None:
        """Every check that does not care what the value means."""
        self.check_structure()
        self.check_fresh_equals_carried(compare)
        self.check_compiled()
        self.check_single_precision()
        self.check_vmap(compare)
        self.check_gradients(ignore, noise)

    def check_structure(self) -> None:
        """The cache keeps its structure, in both precisions, so that a scan can carry it."""
        for dtype in (jnp.float64, jnp.float32):
            term, state = cast_floats((self.term, self.state), dtype)
            cache = self.cache if dtype == jnp.float64 else self.init_cache(term, state)
            name = f"{self.what} in {jnp.dtype(dtype).name}"
            value, after = self.compiled(term, self._clock_like(state), state, cache)
            check_finite(value, f"{name}: the value")
            check_structure(after, cache, f"{name}: the cache after a call")
            # float64 constants promote silently where the user has x64 on; a scan then fails.
            for leaf in jax.tree.leaves(value):
                if (
                    eqx.is_inexact_array(leaf)
                    and jnp.finfo(leaf.dtype).bits != jnp.finfo(dtype).bits
                ):
                    raise AssertionError(
                        f"{name}: the value is {leaf.dtype}, expected {jnp.dtype(dtype).name} like "
                        "the state: a constant of another precision changes it"
                    )

    def check_fresh_equals_carried(self, compare: str) -> None:
        """A cache that was carried along gives what a new one gives."""
        cache = self.evaluate_along([self.state], self.cache, "the state it was made for", compare)
        near = perturb_positions(self.state, 1)
        cache = self.evaluate_along([near], cache, "a small move", compare)
        # In small steps, as a run goes: rebuilds happen on the way, at ever higher density.
        path = [squeeze(near, 1 - 0.025 * k) for k in range(1, 9)]
        self.evaluate_along(path, cache, "a squeeze by 20 % in small steps", compare)
        self.check_other_cell(compare)

    def check_other_cell(self, compare: str) -> None:
        """As a barostat does: what was found for the first box is not that of another."""
        if not has_cell(self.state):
            return
        larger = grow_cells(self.state, 0.01)
        try:
            self.init_cache(self.term, larger)
        except ParameterError:
            self.takes_other_cells = False  # such as one with a grid of this box, which says so
            return
        cache = self.evaluate_along([larger], self.cache, "a box that grew by 1 %", compare)
        self.in_larger_cell = larger, cache

    def evaluate_along(self, path: list[Any], cache: Cache, how: str, compare: str) -> Any:
        """Carry `cache` along a path of states; at its end the value must be that of a fresh one."""
        for state in path:
            value, after = self.compiled(self.term, self.clock, state, cache)
            # As the driver does: grow, and repeat from before the overflow.
            for _ in range(_MAX_GROWTHS):
                if not self.overflows(after):
                    break
                cache = grow_caches(cache, after)[0]
                value, after = self.compiled(self.term, self.clock, state, cache)
            else:
                raise AssertionError(
                    f"{self.what}: its cache overflows after {how}, and growing it does not help"
                )
            cache = after
        self._check_faults(cache)
        expected = self.value(self.term, path[-1], self.init_cache(self.term, path[-1]))
        name = f"{self.what}: with a carried cache, after {how}, against a fresh one"
        check_equal(value, expected, name, compare)
        repeated = self.value(self.term, path[-1], cache)
        check_equal(repeated, expected, f"{name}, called twice", compare)
        return cache

    def check_compiled(self) -> None:
        """Compiled equals line by line."""
        eager = self.term(self.clock, self.state, self.cache)[0]
        compiled = self.value(self.term, self.state, self.cache)
        check_equal(compiled, eager, f"{self.what}: compiled against not compiled", "sum")

    def check_single_precision(self) -> None:
        """float32 is near float64, relative to values here and after a small move."""
        exact = self.value(self.term, self.state, self.cache)
        nearby = self.value(self.term, perturb_positions(self.state, self.seed), self.cache)
        term, state = cast_floats((self.term, self.state), jnp.float32)
        low = self.value(term, state, self.init_cache(term, state))
        # In equilibrium (a lattice) forces are 0, and float32 leaves differences of large terms: the
        # values after a small move say how large those are.
        floor = {
            path: 1e-3 * float(np.max(np.abs(np.asarray(leaf)), initial=0.0))
            for path, leaf in leaves_by_name(nearby).items()
        }
        check_equal(low, exact, f"{self.what}: float32 against float64", "precision", floor=floor)

    def check_vmap(self, compare: str) -> None:
        """A batch of states and parameters gives what each member alone gives."""
        # Different enough that one member may rebuild its cache where another does not.
        states = [self.state, perturb_positions(self.state, 3), squeeze(self.state, 0.98)]
        terms = [self.term, perturb(self.term, 5, 1e-4), self.term]
        members = [{"term": t, "state": s} for t, s in zip(terms, states, strict=True)]
        check_batch(self.outputs, members, self.what, self.comparisons(compare))

    def check_gradients(self, ignore: Sequence[str], noise: float) -> None:
        """By every leaf of the term (which must all matter) and of the state (which need not)."""
        everything = {"term": self.term, "state": self.state}
        required = {f"['term']{p}" for p in parameter_paths(self.term)}
        check_gradient(
            self.outputs,
            everything,
            ignore=ignore,
            require_gradient=required,
            noise=noise,
            what=self.what,
        )

    def more_outputs(self, term: AbstractTerm, state: State) -> dict[str, Any]:
        """Other results that are differentiated along with the value."""
        del term, state
        return {}

    def comparisons(self, compare: str) -> dict[str, str]:
        """For each result the row of the tolerance table by which members of a batch are compared."""
        return {"value": compare}

    def _outputs(self, at: dict[str, Any]) -> dict[str, Any]:
        # Tables of pairs must stay symmetric, or the force of the pair ij would not be that of ji.
        term, state = symmetrize_tables(at["term"]), at["state"]
        value = term(self._clock_like(state), state, self.cache)[0]
        return {"value": value, **self.more_outputs(term, state)}

    def _clock_like(self, state: State) -> Clock:
        # Strict promotion: a float64 time would not mix with a float32 state.
        floats = [x for x in jax.tree.leaves(state) if eqx.is_inexact_array(x)]
        is_double = not floats or jnp.finfo(floats[0].dtype).bits == 64
        return self.clock if is_double else cast_floats(self.clock, jnp.float32)

    def _check_faults(self, cache: Cache) -> None:
        faults = collect_faults(cache).faults()
        if faults != Fault(0):
            raise AssertionError(f"{self.what}: the cache reports {faults!r} for this state")


def _call(term: AbstractTerm, clock: Clock, state: State, cache: Cache) -> tuple[Any, Any]:
    return term(clock, state, cache)

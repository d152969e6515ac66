"""What a function reads from outside may change between two runs: neither keeps the numbers of the other."""

import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import drop_outdated_programs
from physkit.particles.forces.potentials import AbstractPairPotential

rate_constant = 1.0
constants = {"rate": 1.0}
namespace = types.SimpleNamespace(rate=jnp.ones(2))


def factor():
    return rate_constant


def decay(t, y):
    return -rate_constant * y


def decay_by_another_function(t, y):
    return -factor() * y


def decay_of_a_dict(t, y):
    return -constants["rate"] * y


def decay_of_a_namespace(t, y):
    return -namespace.rate[0] * y


def closed_over(rate):
    def function(t, y):
        return -rate * y

    def change(value):
        nonlocal rate
        rate = value

    return function, change


def set_constants(value):
    global rate_constant
    rate_constant = constants["rate"] = value
    namespace.rate = jnp.full(2, value)


@pytest.fixture
def change():
    yield set_constants
    set_constants(1.0)


def end(function, verb=pk.simulate):
    sim = pk.Simulation(pk.RK4(function), dt=0.01)
    if verb is pk.run:
        return float(pk.run(sim, jnp.ones(1), 10, progress=False).state[0])
    return float(verb(sim, jnp.ones(1), 10).state[0])


@pytest.mark.parametrize(
    "function", [decay, decay_by_another_function, decay_of_a_dict, decay_of_a_namespace]
)
def test_a_changed_number_counts(change, function):
    np.testing.assert_allclose(end(function), np.exp(-0.1), rtol=1e-6)
    change(3.0)
    with pytest.warns(pk.errors.PhyskitWarning, match=f"{function.__name__} reads .* has changed"):
        np.testing.assert_allclose(end(function), np.exp(-0.3), rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing has changed since
        np.testing.assert_allclose(end(function), np.exp(-0.3), rtol=1e-6)


def test_functions_that_are_defined_anew_count():
    """As in a notebook, of which one cell is run again."""
    cells = {"__name__": "cells"}
    run_cell = lambda text: exec(compile(text, "<cell>", "exec"), cells)
    run_cell("def rate(y):\n    return -y")
    run_cell("def decay(t, y):\n    return rate(y)")
    np.testing.assert_allclose(end(cells["decay"]), np.exp(-0.1), rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the same code on another line is no other code
        run_cell("\n\ndef rate(y):\n    return -y")
        np.testing.assert_allclose(end(cells["decay"]), np.exp(-0.1), rtol=1e-6)
    for text in ("def rate(y):\n    return -3 * y", "def rate(y, k=2.0):\n    return -k * y"):
        run_cell(text)
        with pytest.warns(pk.errors.PhyskitWarning, match="decay reads rate"):
            got = end(cells["decay"])
        factor = 3 if "3" in text else 2
        np.testing.assert_allclose(got, np.exp(-0.1 * factor), rtol=1e-6)


DECAY = "def decay(t, y): return -rate(y)\n"
OBJECT = "class P:\n    k = 1.0\np = P()\ndef decay(t, y): return -p.k * y"
CLASS = "class P:\n    def rate(self, y): return {} * y\n"
PARTIAL = "import functools\nmul = lambda k, y: k * y\nrate = functools.partial(mul, 1.0)\n" + DECAY
SCALED = """
import functools
def scaled(k):
    return lambda f: functools.wraps(f)(lambda y: k * f(y))
"""
SPRING = """
class Spring:
    scale = 1.0
    def __init__(self, k=1.0): self.k, self.ks, self.calls, self.seen = k, [k], 0, 0
    def set(self, k): self.k = k; self.ks[0] = k
    def rate(self, t, y): self.calls += 1; return -self.k * self.scale * y
    def rate_of_list(self, t, y): return -self.ks[0] * y
    def __call__(self, t, y): return -self.k * y
    @classmethod
    def rate_of_class(cls, t, y): return -cls.scale * y
"""
# What is run at first, and what makes it thrice as fast.
CHANGES = {
    "keyword": (
        "def rate(y, *, k=1.0): return k * y\n" + DECAY,
        "def rate(y, *, k=3.0): return k * y",
    ),
    "names": (
        "def rate(a, b): return 2 * a - b\ndef decay(t, y): return -rate(a=y, b=0 * y) / 2",
        "def rate(a, b): return 6 * a - b",
    ),
    "decorator": (
        SCALED + "@scaled(1.0)\ndef rate(y): return y\n" + DECAY,
        "@scaled(3.0)\ndef rate(y): return y",
    ),
    "factory": (
        "make = lambda k: lambda y: k * y\nf, g, h = map(make, (0.2, 0.3, 0.5))\n"
        "def decay(t, y): return -(f(y) + g(y) + h(y))",
        "g = make(2.3)",
    ),
    "partial": (PARTIAL, "rate = functools.partial(mul, 3.0)"),
    "function in a partial": (PARTIAL, "rate = functools.partial(lambda k, y: 3 * k * y, 1.0)"),
    "function in a dict": (
        "rates = {'a': lambda y: y}\ndef decay(t, y): return -rates['a'](y)",
        "rates = {'a': lambda y: 3 * y}",
    ),
    "set": (
        "names = {'a'}\ndef decay(t, y): return -(1 if 'a' in names else 3) * y",
        "names = {'b'}",
    ),
    "none": ("k = 1.0\ndef decay(t, y): return -(k or 3.0) * y", "k = None"),
    "attribute": (OBJECT, "p.k = 3.0"),
    "attribute of a class": (OBJECT, "P.k = 3.0"),
    "method of a module": (
        "import equinox as eqx\n"
        "class Law(eqx.Module):\n    k: float\n    def rate(self, y): return self.k * y\n"
        "law = Law(1.0)\ndef decay(t, y): return -law.rate(y)",
        "law = Law(3.0)",
    ),
    "method that reads a global": (
        "k = 1.0\nclass P:\n    def rate(self, y): return k * y\np = P()\n"
        "def decay(t, y): return -p.rate(y)",
        "k = 3.0",
    ),
    "list": ("ks = [1.0]\ndef decay(t, y): return -ks[0] * y", "ks = [3.0]"),
    "entry of a list": ("ks = [1.0]\ndef decay(t, y): return -ks[0] * y", "ks[0] = 3.0"),
    "list, beside one that is made": (
        "ks = [1.0]\ndef decay(t, y):\n    terms = []\n    for k in ks: terms.append(-k * y)\n"
        "    return sum(terms)",
        "ks.append(2.0)",
    ),
    "list in a closure": (
        "def make(ks): return lambda t, y: -ks[0] * y\nks = [1.0]\nf = make(ks)\n"
        "def decay(t, y): return f(t, y)",
        "ks[0] = 3.0",
    ),
    "function in a list": (
        "fs = [lambda y: y]\ndef decay(t, y): return -fs[0](y)",
        "fs = [lambda y: 3 * y]",
    ),
    "dict in a partial": (
        "import functools\nk = {'k': 1.0}\nrate = functools.partial(lambda k, y: k['k'] * y, k)\n"
        + DECAY,
        "k['k'] = 3.0",
    ),
    "dict that the rate itself is given": (
        "import functools\ndef decay(k, t, y): return -k['k'] * y\nk = {'k': 1.0}\n"
        "decay = functools.partial(decay, k)",
        "k['k'] = 3.0",
    ),
    "object that the rate itself is given": (
        SPRING + "import functools\ndef decay(t, y, spring): return -spring.k * y\n"
        "spring = Spring()\ndecay = functools.partial(decay, spring=spring)",
        "spring.k = 3.0",
    ),
    "list by default": ("ks = [1.0]\ndef decay(t, y, ks=ks): return -ks[0] * y", "ks[0] = 3.0"),
    "array by default, of a keyword": (
        "import numpy as np\nks = np.ones(2)\ndef decay(t, y, *, ks=ks): return -ks[0] * y",
        "ks[0] = 3.0",
    ),
    "method of an object": (
        SPRING + "spring = Spring()\ndef decay(t, y): return spring.rate(t, y)",
        "spring.set(3.0)",
    ),
    "object in an object": (
        SPRING + "class Outer:\n    def rate(self, y): return self.inner.rate(0, y)\n"
        "outer = Outer()\nouter.inner = Spring()\ndef decay(t, y): return outer.rate(y)",
        "outer.inner.k = 3.0",
    ),
    "class": (CLASS.format(1) + "def decay(t, y): return -P().rate(y)", CLASS.format(3)),
}


@pytest.mark.parametrize("case", CHANGES)
def test_whatever_is_read_or_called_counts(case):
    first, change = CHANGES[case]
    cells = {"__name__": "cells"}
    exec(first, cells)
    np.testing.assert_allclose(end(cells["decay"]), np.exp(-0.1), rtol=1e-6)
    exec(change, cells)
    with pytest.warns(pk.errors.PhyskitWarning, match="decay reads "):
        np.testing.assert_allclose(end(cells["decay"]), np.exp(-0.3), rtol=1e-6)


# Of an object, what is run, and what makes it thrice as fast.
OBJECTS = {
    "attribute": ("spring.rate", "spring.k = 3.0"),
    "attribute that a method sets": ("spring.rate", "spring.set(3.0)"),
    "attribute of its class": ("spring.rate", "Spring.scale = 3.0"),
    "list": ("spring.rate_of_list", "spring.set(3.0)"),
    "callable object": ("spring", "spring.k = 3.0"),
    "class method": ("Spring.rate_of_class", "Spring.scale = 3.0"),
}


@pytest.mark.parametrize("case", OBJECTS)
def test_attributes_of_objects_count(case):
    function, change = OBJECTS[case]
    cells = {"__name__": "cells"}
    exec(SPRING + "spring = Spring()", cells)
    run = lambda: end(eval(function, cells))
    np.testing.assert_allclose(run(), np.exp(-0.1), rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("spring.seen = 5\nother = Spring(2.0)", cells)  # nothing that runs reads it
        run()
    exec(change, cells)
    with pytest.warns(pk.errors.PhyskitWarning, match="reads self|reads cls"):
        np.testing.assert_allclose(run(), np.exp(-0.3), rtol=1e-6)


@pytest.mark.parametrize(
    ("decorated", "is_seen"),
    [
        (
            "@functools.partial(jax.jit, static_argnums=0)\n    def __call__(self, t, y): return -self.k * y",
            True,
        ),
        ("@eqx.filter_jit\n    def __call__(self, t, y): return -self.k * y", True),
        ("__call__ = functools.partialmethod(lambda self, s, t, y: -s * self.k * y, 1.0)", False),
    ],
)
def test_whatever_a_decorator_makes_of_a_call_can_be_run(decorated, is_seen):
    cells = {"__name__": "cells"}
    text = f"import functools, equinox as eqx, jax\nclass F:\n    k = 1.0\n    {decorated}\nf = F()"
    exec(text, cells)
    np.testing.assert_allclose(end(cells["f"]), np.exp(-0.1), rtol=1e-6)
    if is_seen:
        cells["f"].k = 3.0
        with pytest.warns(pk.errors.PhyskitWarning, match="reads self.k"):
            np.testing.assert_allclose(end(cells["f"]), np.exp(-0.3), rtol=1e-6)


def test_objects_are_told_apart():
    cells = {"__name__": "cells"}
    exec(SPRING + "one, other = Spring(1.0), Spring(3.0)", cells)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, factor in (("one", 1), ("other", 3), ("one", 1)):
            for function in (cells[name].rate, cells[name]):
                np.testing.assert_allclose(end(function), np.exp(-0.1 * factor), rtol=1e-6)


UNCHANGED = {
    # Attributes of what is not outside have names that globals may have.
    "attribute": ("T = 1.0\ndef decay(t, y): return -y.T", "T = 2.0"),
    "documentation": (
        "def rate(y):\n    'a'\n    return y\n" + DECAY,
        "def rate(y):\n    'b'\n    return y",
    ),
    "list": ("seen = []\ndef decay(t, y): return seen.append(t) or -y", ""),
    "list of an object": (
        "class Seen:\n    def __init__(self): self.times = []\n"
        "    def note(self, t): self.times.append(t); self.last = t\n"
        "seen = Seen()\ndef decay(t, y): return seen.note(t) or -y",
        "seen.times = []",
    ),
    "counter": ("count = [0]\ndef decay(t, y):\n    count[0] += 1\n    return -y", "count[0] = 7"),
    "default list": ("def decay(t, y, seen=[]): return seen.append(t) or -y", ""),
    "any attribute": (
        "class Any:\n    def __getattr__(self, name): return Any()\n    def __call__(self): return 1.0\n"
        "one = Any()\ndef decay(t, y): return -one() * y",
        "one = Any()",
    ),
}


@pytest.mark.parametrize("case", UNCHANGED)
def test_what_is_not_read_does_not_count(case):
    first, change = UNCHANGED[case]
    cells = {"__name__": "cells"}
    exec(first, cells)
    end(cells["decay"])
    exec(change, cells)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(end(cells["decay"]), np.exp(-0.1), rtol=1e-6)


def test_equal_names_of_two_modules_are_told_apart():
    one, other = {"__name__": "one", "g": 1.0}, {"__name__": "other", "g": 5.0}
    exec("def force(y):\n    return -g * y", other)
    one["force"] = other["force"]
    exec("def decay(t, y):\n    return g * force(y)", one)
    np.testing.assert_allclose(end(one["decay"]), np.exp(-0.5), rtol=1e-6)
    for cell, value, factor in ((one, 2.0, 10), (other, 1.0, 2)):
        cell["g"] = value
        with pytest.warns(pk.errors.PhyskitWarning, match="decay reads .*g"):
            np.testing.assert_allclose(end(one["decay"]), np.exp(-0.1 * factor), rtol=1e-4)


def test_closures_and_derivatives_see_it():
    function, change = closed_over(1.0)
    sim = pk.Simulation(pk.RK4(function), dt=0.01)
    slope = jax.grad(lambda y: jnp.sum(pk.simulate(sim, y, 10).state))
    np.testing.assert_allclose(slope(jnp.ones(1)), np.exp(-0.1), rtol=1e-6)
    change(3.0)
    with pytest.warns(pk.errors.PhyskitWarning, match="function reads rate"):
        np.testing.assert_allclose(slope(jnp.ones(1)), np.exp(-0.3), rtol=1e-6)


class Repulsion(AbstractPairPotential):
    def energy(self, r):
        return rate_constant / r**2


def test_methods_of_terms_see_it(change):
    atoms = pk.Particles([[1.0, 1.0], [2.0, 1.0]], space=pk.Box([4.0, 4.0]))
    sim = pk.Simulation(pk.VelocityVerlet(pk.Pairwise(Repulsion(), cutoff=1.5)), dt=1e-3)
    speed = lambda: float(pk.run(sim, atoms, 5, progress=False).state.velocity[1, 0])
    before = speed()
    change(3.0)
    with pytest.warns(pk.errors.PhyskitWarning, match="Repulsion reads rate_constant"):
        np.testing.assert_allclose(speed(), 3 * before, rtol=1e-3)


def scaled_sum(now):
    return rate_constant * jnp.sum(now.state)


def test_quantities_see_it(change):
    sim = pk.Simulation(pk.RK4(lambda t, y: -y), dt=0.1)
    total = lambda: float(pk.evaluate(sim, jnp.ones(2), total=scaled_sum)["total"])
    assert total() == 2.0
    change(3.0)
    with pytest.warns(pk.errors.PhyskitWarning, match="scaled_sum reads rate_constant"):
        assert total() == 6.0


def misfit(model):
    return model["k"] - rate_constant


def test_posteriors_see_it(change):
    posterior = pk.inference.Posterior(
        misfit, {"k": jnp.ones(())}, where=lambda m: m["k"], priors=pk.priors.Normal(0.5, 1.0)
    )
    draw = lambda: pk.inference.chain_sweep(posterior, 4, warmup=4, chains=2)
    draw()
    change(3.0)
    with pytest.warns(pk.errors.PhyskitWarning, match="misfit reads rate_constant"):
        draw()


def test_what_is_no_number_does_not_count():
    sim = pk.Simulation(pk.RK4(lambda t, y: -y), dt=0.1)
    holder = [object()]

    def observe(now):
        return now.state[0] + (0 if holder else 1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drop_outdated_programs(sim, observe)
        holder[0] = object()
        drop_outdated_programs(sim, observe)

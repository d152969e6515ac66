"""Names of other codes answer with what to use here; every remedy exists."""

import inspect
import re

import pytest

import physkit as pk
from physkit._synonyms import ABSENT, SYNONYMS


def names_in(text: str) -> list[str]:
    """`pk.a.b` in a remedy, with the attributes that follow."""
    return re.findall(r"\bpk((?:\.[A-Za-z_]\w*)+)", text)


def missing_names(text: str) -> list[str]:
    found = []
    for path in names_in(text):
        value = pk
        for part in path.split(".")[1:]:
            value = getattr(value, part, None)
            if value is None:
                found.append(f"pk{path}")
                break
    return found


def test_every_remedy_exists():
    """Of both tables; and a remedy that does not exist would be found."""
    assert missing_names("use pk.NoSuchThing(1) or pk.forces.Nothing") == [
        "pk.NoSuchThing",
        "pk.forces.Nothing",
    ]
    broken = {k: m for t in (SYNONYMS, ABSENT) for k, v in t.items() if (m := missing_names(v))}
    assert not broken


def test_arguments_of_remedies_exist():
    """`pk.BAOAB(force, temperature=…)` names arguments that the class has."""
    wrong = []
    for name, remedy in {**SYNONYMS, **ABSENT}.items():
        for path, inside in re.findall(r"\bpk((?:\.\w+)+)\(([^()]*)\)", remedy):
            value = pk
            for part in path.split(".")[1:]:
                value = getattr(value, part)
            taken = inspect.signature(value).parameters
            if any(p.kind is p.VAR_KEYWORD for p in taken.values()):
                continue
            wrong += [
                f"{name}: pk{path}({k}=…)" for k in re.findall(r"(\w+)=", inside) if k not in taken
            ]
    assert not wrong


def test_there_are_a_hundred_and_none_hides_a_name():
    assert len(SYNONYMS) >= 100
    assert len(ABSENT) >= 20
    assert not [name for name in (*SYNONYMS, *ABSENT) if name in dir(pk)]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Verlet", r"use pk\.VelocityVerlet\(force\)"),
        ("Langevin", r"use pk\.BAOAB"),
        ("NVT", r"pk\.NoseHooverChain"),
        ("NPT", r"pk\.StochasticCellRescaling"),
        ("npt", r"pk\.StochasticCellRescaling"),
        ("RDF", r"pk\.RadialDistribution"),
        ("MSD", r"pk\.MeanSquareDisplacement"),
        ("Tsit5", r"pk\.Diffrax with solver=diffrax\.Tsit5\(\)"),
        ("Heat", r"pk\.equations\.Diffusion"),
        ("heat_equation", r"pk\.equations\.Diffusion"),
        ("save", r"pk\.save_checkpoint"),
        ("load", r"pk\.open"),
        ("animate", r"pk\.plot\.animate"),
        ("Periodic", r"pk\.Box"),
        ("odeint", r"pk\.RK4"),
        ("LJ", r"pk\.LennardJones"),
        ("PPPM", r"pk\.ParticleMeshEwald"),
        ("NoseHoover", r"pk\.NoseHooverChain"),
        ("LeapFrog", r"did you mean 'Leapfrog'"),
        ("Laplacian", r"operators\.laplacian"),
        ("KE", r"pk\.KineticEnergy"),
        ("boxx", r"did you mean"),
        ("zzzzzz", r"dir\(pk\) lists"),
    ],
)
def test_a_name_of_another_code(name, says):
    with pytest.raises(AttributeError, match=says):
        getattr(pk, name)


def test_a_family_says_the_nearest_name_and_what_it_has():
    with pytest.raises(AttributeError, match=r"equations has no 'HeatEquation'.*Diffusion"):
        _ = pk.equations.HeatEquation
    with pytest.raises(AttributeError, match=r"limiters has no 'VanLear'; did you mean 'VanLeer'"):
        _ = pk.limiters.VanLear

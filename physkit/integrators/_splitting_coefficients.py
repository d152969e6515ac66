"""Coefficients of splitting methods in fractions of a step, each with its source.

A *symmetric composition* applies a method of order 2 with the step lengths γ₁dt, …, γₛdt, where
γᵢ = γₛ₊₁₋ᵢ and Σγ = 1. A *splitting* gives kicks and drifts one by one.
"""

import itertools

Weights = tuple[float, ...]
Stages = tuple[Weights, Weights]


def _mirror(*half: float) -> Weights:
    """(γ₁ … γ_m, 1 − 2Σγ, γ_m … γ₁): the middle makes the sum 1."""
    return (*half, 1 - 2 * sum(half), *half[::-1])


def _suzuki_weights(order: int) -> Weights:
    """Five copies of the method two orders below, p = 1/(4 − 4^(1/(order − 1))): p, p, 1 − 4p, p, p."""
    if order == 2:
        return (1.0,)
    p = 1 / (4 - 4 ** (1 / (order - 1)))
    inner = _suzuki_weights(order - 2)
    return tuple(outer * weight for outer in (p, p, 1 - 4 * p, p, p) for weight in inner)


def kicks_and_drifts(gamma: Weights) -> Stages:
    """The composition of velocity Verlet with step lengths `gamma`, neighboring kicks merged."""
    # The half kick that ends one Verlet step and the one that begins the next see the same force.
    merged = tuple((a + b) / 2 for a, b in itertools.pairwise(gamma))
    return (gamma[0] / 2, *merged, gamma[-1] / 2), gamma


# Yoshida, Phys. Lett. A 150, 262 (1990): order 4, eq. 2.11 (also Forest & Ruth 1990, Suzuki 1990);
# order 6, table 1, solution A; order 8, table 2, solution D. Digits of the latter two from Hairer,
# Lubich & Wanner, Geometric Numerical Integration, 2nd ed. (2006), section V.3.2.
YOSHIDA = {
    4: _mirror(1 / (2 - 2 ** (1 / 3))),
    6: _mirror(
        0.78451361047755726381949763, 0.23557321335935813368479318, -1.17767998417887100694641568
    ),
    8: _mirror(
        0.74167036435061295344822780,
        -0.40910082580003159399730010,
        0.19075471029623837995387626,
        -0.57386247111608226665638773,
        0.29906418130365592384446354,
        0.33462491824529818378495798,
        0.31529309239676659663205666,
    ),
}

# Suzuki, Phys. Lett. A 146, 319 (1990), eqs. 14 and 15.
SUZUKI = {order: _suzuki_weights(order) for order in (4, 6, 8)}

# Kahan & Li, Math. Comput. 66, 1089 (1997), methods s9odr6a and s17odr8a; digits as above.
KAHAN_LI = {
    6: _mirror(
        0.39216144400731413927925056,
        0.33259913678935943859974864,
        -0.70624617255763935980996482,
        0.08221359629355080023149045,
    ),
    8: _mirror(
        0.13020248308889008087881763,
        0.56116298177510838456196441,
        -0.38947496264484728640807860,
        0.15884190655515560089621075,
        -0.39590389413323757733623154,
        0.18453964097831570709183254,
        0.25837438768632204729397911,
        0.29501172360931029887096624,
    ),
}


def _pefrl() -> Stages:
    """Omelyan, Mryglod & Folk, Comput. Phys. Commun. 146, 188 (2002), eqs. 20 and 22."""
    # Four kicks, five drifts; the middle drift makes the sum 1. λ < 0: the two inner kicks go
    # back in time.
    xi, lam, chi = 0.1786178958448091, -0.2123418310626054, -0.06626458266981849
    kick = (1 - 2 * lam) / 2
    return (kick, lam, lam, kick), (xi, chi, 1 - 2 * (chi + xi), chi, xi)


def _blanes_moan_4() -> Stages:
    """Blanes & Moan, J. Comput. Appl. Math. 142, 313 (2002), table 3, SRKN₆ᵇ."""
    # Seven kicks and six drifts, palindromes; the last coefficient of each half follows from the sums,
    # which are 1. A kick comes first and last, so that the force at the end of a step serves the next.
    kicks = (0.0829844064174052, 0.396309801498368, -0.0390563049223486)
    drifts = (0.245298957184271, 0.604872665711080)
    drifts = (*drifts, 0.5 - sum(drifts))
    return _mirror(*kicks), drifts + drifts[::-1]


def _blanes_moan_6() -> Stages:
    """The same, SRKN₁₁ᵇ."""
    # Twelve kicks and eleven drifts: here the drifts have a middle one.
    kicks = (
        0.0414649985182624,
        0.198128671918067,
        -0.0400061921041533,
        0.0752539843015807,
        -0.0115113874206879,
    )
    kicks = (*kicks, 0.5 - sum(kicks))
    drifts = _mirror(
        0.123229775946271,
        0.290553797799558,
        -0.127049212625417,
        -0.246331761062075,
        0.357208872795928,
    )
    return kicks + kicks[::-1], drifts


PEFRL_STAGES = _pefrl()
BLANES_MOAN = {4: _blanes_moan_4(), 6: _blanes_moan_6()}

"""The Cα atoms of the miniprotein Trp-cage, by ideal geometry."""

import itertools

import numpy as np
from jaxtyping import Float

# Å and degrees, Engh & Huber, Acta Cryst. A 47, 392 (1991): N–Cα, Cα–C, C–N, and the angles at C, N and Cα.
_LENGTHS, _ANGLES = (1.458, 1.525, 1.329), (116.2, 121.7, 111.2)
# φ and ψ of residues 1 to 20: an α-helix, a 3₁₀-helix, a polyproline helix, and glycines 10 and 15 between.
_TORSIONS = (
    (-70, 140), *8 * [(-62, -43)], (100, -40), *4 * [(-60, -30)], (130, 0), *5 * [(-70, 150)],
)  # fmt: skip


def trp_cage() -> Float[np.ndarray, "20 3"]:
    """Cα positions of the miniprotein Trp-cage in Å, computed: for `go_model(trp_cage())`.

    An α-helix (residues 2 to 9), a 3₁₀-helix (11 to 14) and a polyproline helix (16 to 20), each with its ideal
    torsions (φ, ψ). The two glycines between them are left-handed, with those torsions, to 10°, that bring
    prolines 12, 17, 18 and 19 nearest to tryptophan 6 while no two Cα atoms three or more apart along the
    chain are closer than 4.6 Å.

    **Reference:** Neidigh, Fesinmeyer & Andersen, Nat. Struct. Biol. 9, 425 (2002), for the order of helices.
    """
    (n_ca, ca_c, c_n), (at_c, at_n, at_ca) = _LENGTHS, np.radians(_ANGLES)
    n, alpha = np.zeros(3), np.array([n_ca, 0.0, 0.0])
    c = alpha + ca_c * np.array([-np.cos(at_ca), np.sin(at_ca), 0.0])
    found = [alpha]
    for (_, psi), (phi, _) in itertools.pairwise(np.radians(_TORSIONS)):
        next_n = _next_atom(n, alpha, c, c_n, at_c, psi)
        next_alpha = _next_atom(alpha, c, next_n, n_ca, at_n, np.pi)
        c = _next_atom(c, next_n, next_alpha, ca_c, at_ca, phi)
        n, alpha = next_n, next_alpha
        found.append(alpha)
    return np.stack(found)


def _next_atom(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, length: float, angle: float, torsion: float
) -> np.ndarray:
    """The atom after a, b and c of a chain, by its bond to c, the angle there and the torsion about b–c."""
    along = (c - b) / np.linalg.norm(c - b)
    normal = np.cross(b - a, along)
    normal /= np.linalg.norm(normal)
    side = np.cross(normal, along)
    turned = np.cos(torsion) * side + np.sin(torsion) * normal
    return c + length * (np.sin(angle) * turned - np.cos(angle) * along)

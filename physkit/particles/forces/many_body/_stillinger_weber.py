"""The Stillinger–Weber potential."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import param, require_positive, static

from ._neighborhoods import Neighborhoods
from ._potential import AbstractManyBodyPotential


class StillingerWeber(AbstractManyBodyPotential):
    """Stillinger–Weber potential for tetrahedral semiconductors and monatomic water.

        U = Σ_{i<j} φ₂(r_ij) + Σᵢ Σ_{j<l} h(r_ij) h(r_il) λε (cos θ_jil − cos θ₀)²
        φ₂(r) = A ε [B (σ/r)^p − (σ/r)^q] e^{σ/(r − aσ)},   h(r) = e^{γσ/(r − aσ)},   r < aσ

    **Arguments:**

    - `epsilon`: ε, energy. `sigma`: σ, length.
    - `a`: cutoff in units of σ. `three_body`: λ. `gamma`: γ.
    - `cos_angle`: cos θ₀, −1/3 for tetrahedra.
    - `A`, `B`: of the pair part; `p` and `q`, whole numbers, are its exponents.

    **Good values:** silicon, which is the default in eV and Å: ε = 2.1683, σ = 2.0951; diamond lattice of
    a = 5.431 Å: −4.3366 eV per atom. Monatomic water (mW): ε = 6.189 kcal/mol, σ = 2.3925 Å, λ = 23.15.

    **Notes:** the sum over pairs of neighbors is a sum of squares of three moments of the neighborhood,

        Σ_{jl} h_j h_l (u_j·u_l − c)² = |Σ h u⊗u|² − 2c |Σ h u|² + c² (Σ h)²

    so that its cost is linear in the number of neighbors.

    **Reference:** Stillinger & Weber, Phys. Rev. B 31, 5262 (1985), eqs. 2.1–2.7; Molinero & Moore, J. Phys.
    Chem. B 113, 4008 (2009), for water.
    """

    epsilon: Float[Array, ""] = param(2.1683)
    sigma: Float[Array, ""] = param(2.0951)
    a: Float[Array, ""] = param(1.80)
    three_body: Float[Array, ""] = param(21.0)
    gamma: Float[Array, ""] = param(1.20)
    cos_angle: Float[Array, ""] = param(-1 / 3)
    A: Float[Array, ""] = param(7.049556277)
    B: Float[Array, ""] = param(0.6022245584)
    p: int = static(default=4)
    q: int = static(default=0)

    def __check_init__(self):
        require_positive(self, "epsilon", "sigma", "a", "gamma")

    @property
    def cutoff(self) -> Float[Array, ""]:
        return self.a * self.sigma

    @property
    def uses_pairs_of_neighbors(self) -> bool:
        return False

    def site_energies(self, near: Neighborhoods) -> Float[Array, " c"]:
        inside = near.present & (near.distance < self.cutoff)
        # In units of σ; elsewhere a distance at which all is finite.
        r = jnp.where(inside, near.distance / self.sigma, 0.5 * self.a)
        decay = 1 / (r - self.a)
        pair = self.A * (self.B * r**-self.p - r**-self.q) * jnp.exp(decay)
        h = jnp.where(inside, jnp.exp(self.gamma * decay), 0)
        pair = jnp.where(inside, pair, 0)

        u = [x / near.distance for x in near.components]
        axes = [(a, b) for a in range(len(u)) for b in range(a, len(u))]
        seconds = [h * (u[a] * u[b]) for a, b in axes]
        # All are 0 where there is no neighbor: a mask in each sum would take as long as all else.
        sums = [jnp.sum(x, axis=0) for x in (pair, h, h * h, *(h * x for x in u), *seconds)]
        (pairs, zeroth, same), firsts, seconds = sums[:3], sums[3 : 3 + len(u)], sums[3 + len(u) :]
        first = sum(x**2 for x in firsts)
        second = sum((1 if a == b else 2) * x**2 for (a, b), x in zip(axes, seconds, strict=True))
        c = self.cos_angle
        # Without the terms j = l, whose cosine is 1; each pair j < l is there twice.
        triplets = (second - 2 * c * first + c**2 * zeroth**2 - same * (1 - c) ** 2) / 2
        return self.epsilon * (pairs / 2 + self.three_body * triplets)

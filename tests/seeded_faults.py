"""Faults of one line that `mutants.py` seeds into a copy of the package."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A fault: `old` becomes `new` in a file of physkit, and these tests of `tests` should fail."""

    path: str
    old: str
    new: str
    tests: str


MUTANTS = [
    Mutant(*fault)
    for fault in (
        # particles
        (
            "particles/forces/potentials/_lennard_jones.py",
            "s6 * (2 * s6 - 1)",
            "s6 * (s6 - 1)",
            "particles/test_potentials.py",
        ),
        (
            "particles/forces/potentials/_lennard_jones.py",
            "s6 * (s6 - 1)  #",
            "s6 * (s6 + 1)  #",
            "particles/test_potentials.py",
        ),
        (
            "particles/forces/potentials/_wca.py",
            "(4 * s6 * (s6 - 1) + 1)",
            "(4 * s6 * (s6 - 1))",
            "particles/test_potentials.py",
        ),
        (
            "particles/forces/potentials/_morse.py",
            "2 * self.depth * self",
            "self.depth * self",
            "particles/test_potentials.py",
        ),
        (
            "particles/forces/potentials/_buckingham.py",
            "- 6 * (self",
            "- 5 * (self",
            "particles/test_potentials.py",
        ),
        (
            "particles/forces/potentials/_mixing.py",
            "x[None, :]) / 2",
            "x[None, :])",
            "particles/test_potentials.py",
        ),
        (
            "particles/forces/bonded/_bonds.py",
            "return 0.5 * local",
            "return local",
            "particles/test_bonded.py",
        ),
        (
            "particles/forces/bonded/_angles.py",
            "local.parameters(self.angle)\n        return 0.5 * local",
            "local.parameters(self.angle)\n        return local",
            "particles/test_bonded.py",
        ),
        (
            "particles/forces/pairs/_pairwise.py",
            '("energy", particles, cache) / 2',
            '("energy", particles, cache)',
            "particles/test_pairwise.py",
        ),
        (
            "particles/forces/pairs/_truncation.py",
            "energy(r) * (1 - x**3 * (10 - 15 * x",
            "energy(r) * (1 - x**3 * (10 - 14 * x",
            "particles/test_truncation.py",
        ),
        (
            "particles/forces/pairs/_truncation.py",
            "return 0.5 * n * num_within",
            "return n * num_within",
            "particles/test_truncation.py particles/test_pairwise.py",
        ),
        (
            "particles/forces/pairs/_direct_gravity.py",
            "units.energy(-0.5 *",
            "units.energy(-1.0 *",
            "particles/test_direct_gravity.py",
        ),
        (
            "particles/neighbors/_displacement.py",
            "largest > radius / 2",
            "largest > radius * 9",
            "particles/test_force_faults.py",
        ),
        (
            "particles/_velocities.py",
            "d * (moving - 1)",
            "d * moving",
            "particles/test_velocities.py",
        ),
        # integrators
        (
            "integrators/particle/_langevin.py",
            "return kick(state, total, 0.5 * clock.dt)",
            "return kick(state, total, clock.dt)",
            "integrators/test_langevin.py",
        ),
        (
            "integrators/particle/_nose_hoover.py",
            "is_first * (degrees - 1)",
            "is_first * degrees",
            "integrators/test_nose_hoover.py",
        ),
        (
            "integrators/_splitting_coefficients.py",
            "1 - 4 * p",
            "1 - 3 * p",
            "integrators/test_symplectic.py integrators/test_order.py",
        ),
        # fields
        (
            "fields/_power_spectrum.py",
            "float(np.prod(grid.shape)) ** 2",
            "float(np.prod(grid.shape))",
            "fields/test_power_spectrum.py",
        ),
        (
            "fields/finite_volume/_limiters.py",
            "minmod(2 * minmod(below",
            "minmod(3 * minmod(below",
            "fields/test_finite_volume.py",
        ),
        (
            "fields/states/_gas.py",
            "(gamma - 1) * self._internal",
            "gamma * self._internal",
            "fields/test_gas.py",
        ),
        (
            "fields/states/_gas.py",
            "- 0.5 * ratio(jnp.sum(m * m",
            "- ratio(jnp.sum(m * m",
            "fields/test_gas.py",
        ),
        (
            "fields/equations/_wave.py",
            "self.scheme) * self.speed**2",
            "self.scheme) * self.speed",
            "fields/test_equations.py systems/test_waves_and_patterns.py",
        ),
        (
            "fields/equations/_burgers.py",
            ".derivative(0) * -0.5",
            ".derivative(0) * 0.5",
            "fields/test_rates_of_waves.py",
        ),
        (
            "fields/equations/_kuramoto_sivashinsky.py",
            "* k2 - self.hyper",
            "* k2 + self.hyper",
            "fields/test_rates_of_waves.py",
        ),
        (
            "fields/equations/_schroedinger.py",
            "return 0.5 * self.hbar *",
            "return self.hbar *",
            "fields/test_rates_of_waves.py",
        ),
        (
            "fields/operators/_staggered.py",
            "(low + high) * 0.5",
            "(low + high)",
            "fields/test_operators.py",
        ),
        (
            "fields/elliptic/_variable_coefficients.py",
            "f / spacing[k] ** 2",
            "f / spacing[k]",
            "fields/test_elliptic.py",
        ),
        (
            "fields/equations/fluid/_navier_stokes.py",
            "9 * (n * size) ** 2",
            "9 * (n * size)",
            "fields/test_incompressible.py",
        ),
        # coupling
        (
            "coupling/_kernels.py",
            "(4 - 6 * s**2 + 3 * s**3)",
            "(4 - 6 * s**2 + 2 * s**3)",
            "coupling/test_transfer.py",
        ),
        (
            "coupling/_particle_mesh.py",
            "self._potential(source).field()).integral() / 2",
            "self._potential(source).field()).integral()",
            "coupling/test_particle_mesh.py",
        ),
        (
            "coupling/_mesh_interactions.py",
            "-4 * jnp.pi",
            "-2 * jnp.pi",
            "coupling/test_particle_mesh.py coupling/test_mesh_force_error.py",
        ),
        # geometry, core
        (
            "geometry/spaces/_box.py",
            "self.lengths / 2, jnp.inf",
            "self.lengths, jnp.inf",
            "geometry/test_spaces.py",
        ),
        (
            "geometry/spaces/_triclinic.py",
            "jnp.min(heights(self.reduced)) / 2",
            "jnp.min(heights(self.reduced))",
            "geometry/test_spaces.py",
        ),
        ("core/_clock.py", "self.high + (total >> _WORD)", "self.high", "core/test_clock.py"),
        # native code
        ("native/_formulas.py", '"{0} >= {1}",', '"{0} > {1}",', "native/test_translation.py"),
        (
            "native/_formulas.py",
            "({{0}} >= {beyond} ? {most}",
            "({{0}} >= {beyond} ? {least}",
            "native/test_translation.py",
        ),
        (
            "native/_translate.py",
            "GatherScatterMode.FILL_OR_DROP and starts",
            "GatherScatterMode.CLIP and starts",
            "native/test_translation.py",
        ),
        (
            "native/_translate.py",
            "[least, x], out",
            "[least, least], out",
            "native/test_translation.py",
        ),
        (
            "native/_translate.py",
            "self._changing.add(name)",
            "pass",
            "native/test_translation.py native/test_sums.py",
        ),
        ("native/functions.h", "1.0f / 720", "1.0f / 702", "native/test_functions.py"),
        (
            "native/functions.h",
            "exp_f64(-(z * z)) * t * p",
            "exp_f64(-(x * z)) * t * p",
            "native/test_functions.py",
        ),
        (
            "native/sum_over_partners.c",
            "is_pair[c] = place < partners ? 1 : 0;",
            "is_pair[c] = 1;",
            "native/test_sums.py",
        ),
        (
            "native/sum_over_partners.c",
            "->arguments[0] + (member * rows + row) * columns;",
            "->arguments[0] + row * columns;",
            "native/test_sums.py",
        ),
        (
            "native/sum_over_partners.c",
            "(length + WIDTH - 1) / WIDTH * WIDTH",
            "length / WIDTH * WIDTH",
            "native/test_sums.py",
        ),
        (
            "native/threads.h",
            "end = begin + work->chunk_items;",
            "end = begin + work->chunk_items - 1;",
            "native/test_sums.py",
        ),
        (
            "native/search_neighbors.c",
            "length += is_near[c] & (found->place[c] != place);",
            "length += is_near[c];",
            "native/test_search.py",
        ),
        (
            "native/search_neighbors.c",
            "length + more;",
            "length;",
            "native/test_search.py",
        ),
        (
            "native/search_neighbors.c",
            "is_outside |= s->is_outside[a][entry];",
            "is_outside = s->is_outside[a][entry];",
            "native/test_search.py",
        ),
        (
            "native/_library_cache.py",
            "if path.name != _file_name(name, path.read_bytes()):",
            "if not path.exists():",
            "native/test_compiler.py",
        ),
        (
            "native/_library_cache.py",
            "status.st_mode & 0o022",
            "status.st_mode & 0o002",
            "native/test_compiler.py",
        ),
        ("native/_compiler.py", "_unanswered.add(compiler)", "pass", "native/test_compiler.py"),
        # observe, fit, ensemble
        (
            "observe/statistics/_radial_distribution.py",
            "n * (n - 1) / 2, dtype",
            "n * n / 2, dtype",
            "observe/test_structure.py",
        ),
        (
            "observe/statistics/_structure_factor.py",
            "cosine**2 + sine**2",
            "cosine**2 - sine**2",
            "observe/test_structure.py",
        ),
        ("fit/_reweighting.py", "max(blocks - 1, 1)", "max(blocks - 9, 1)", "fit/test_reweight.py"),
        (
            "fit/uncertainty/_standard_errors.py",
            "np.sum(residuals**2) / degrees_of_freedom",
            "np.sum(residuals**2) / residuals.size",
            "fit/test_fit.py",
        ),
        (
            "ensemble/statistics/_reductions.py",
            '["squares"] / (count - 1)',
            '["squares"] / count',
            "ensemble/test_reductions.py",
        ),
        (
            "ensemble/statistics/_bootstrap.py",
            "quantile((1 - level) / 2)",
            "quantile(1 - level)",
            "ensemble/test_ensemble_statistics.py",
        ),
        # checks that are dropped
        (
            "storage/_checksums.py",
            "if array_checksum(name, values) != expected:",
            "if False:",
            "storage/test_checksums.py storage/test_checkpoint.py",
        ),
        (
            "storage/_untrusted_hdf5.py",
            "get_info(key).type != h5py.h5l.TYPE_HARD",
            "get_info(key).type == 77",
            "storage/test_hostile_files.py storage/test_checkpoint.py storage/test_table.py",
        ),
        (
            "core/_terms.py",
            "if len(set(given)) < len(given):",
            "if False:",
            "core integrators/test_composition_checks.py",
        ),
    )
]

"""Ready-made `(simulation, state)` pairs, one physics a file, each with its published reference."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from .acoustics._acoustic_monopole import (
        acoustic_monopole as acoustic_monopole,
        monopole_pressure as monopole_pressure,
    )
    from .acoustics._elastic_half_space import (
        elastic_half_space as elastic_half_space,
        rayleigh_speed as rayleigh_speed,
    )
    from .dynamics._lorenz import lorenz as lorenz
    from .dynamics._lotka_volterra import (
        PELTS_RATES as PELTS_RATES,
        LotkaVolterra as LotkaVolterra,
        Pelts as Pelts,
        fit_pelts as fit_pelts,
        hare_and_lynx as hare_and_lynx,
        pelts as pelts,
        pelts_posterior as pelts_posterior,
    )
    from .electromagnetism._cavity import (
        electromagnetic_cavity as electromagnetic_cavity,
        yee_frequency as yee_frequency,
    )
    from .electromagnetism._dielectric_slab import (
        dielectric_slab as dielectric_slab,
        slab_coefficients as slab_coefficients,
    )
    from .flow._baroclinic_channel import baroclinic_channel as baroclinic_channel
    from .flow._baroclinic_turbulence import baroclinic_turbulence as baroclinic_turbulence
    from .flow._cavities import (
        CAVITY_PROFILE as CAVITY_PROFILE,
        CONVECTION_NUSSELT as CONVECTION_NUSSELT,
        convection_cell as convection_cell,
        lid_driven_cavity as lid_driven_cavity,
    )
    from .flow._cylinder import (
        CYLINDER_DRAG as CYLINDER_DRAG,
        CYLINDER_LIFT as CYLINDER_LIFT,
        CYLINDER_PRESSURE as CYLINDER_PRESSURE,
        cylinder_in_channel as cylinder_in_channel,
    )
    from .flow._lattice_fluids import (
        lattice_cavity as lattice_cavity,
        lattice_convection as lattice_convection,
        shan_chen_droplet as shan_chen_droplet,
    )
    from .flow._particle_laden_flow import (
        particle_laden_taylor_green as particle_laden_taylor_green,
    )
    from .flow._probed_flow import (
        TRUE_FORCING as TRUE_FORCING,
        TRUE_VISCOSITY as TRUE_VISCOSITY,
        FlowFit as FlowFit,
        ProbedFlow as ProbedFlow,
        fit_flow as fit_flow,
        probe_flow as probe_flow,
        probed_flow as probed_flow,
    )
    from .flow._settling_disk import settling_disk as settling_disk
    from .flow._shallow_water_basins import (
        stommel_gyre as stommel_gyre,
        stommel_streamfunction as stommel_streamfunction,
        streamfunction as streamfunction,
        thacker_bowl as thacker_bowl,
        thacker_solution as thacker_solution,
    )
    from .flow._sphere import (
        EARTH_GRAVITY as EARTH_GRAVITY,
        EARTH_RADIUS as EARTH_RADIUS,
        EARTH_ROTATION as EARTH_ROTATION,
        barotropic_jet as barotropic_jet,
        mountain_flow as mountain_flow,
        rossby_haurwitz_wave as rossby_haurwitz_wave,
    )
    from .flow._surface_turbulence import surface_quasi_geostrophic as surface_quasi_geostrophic
    from .flow._taylor_green import (
        TAYLOR_GREEN_PEAK as TAYLOR_GREEN_PEAK,
        taylor_green_2d as taylor_green_2d,
        taylor_green_3d as taylor_green_3d,
        taylor_green_vorticity as taylor_green_vorticity,
    )
    from .flow._turbulence import (
        decaying_turbulence as decaying_turbulence,
        kolmogorov_flow as kolmogorov_flow,
        random_vorticity as random_vorticity,
    )
    from .gas._gas_waves import (
        jeans_wave as jeans_wave,
        kelvin_helmholtz as kelvin_helmholtz,
        sound_wave as sound_wave,
        viscous_shear as viscous_shear,
    )
    from .gas._magnetized_gas import (
        BRIO_WU_END as BRIO_WU_END,
        ORSZAG_TANG_END as ORSZAG_TANG_END,
        brio_wu as brio_wu,
        orszag_tang as orszag_tang,
    )
    from .gas._sedov import (
        SEDOV_ALPHA as SEDOV_ALPHA,
        SEDOV_END as SEDOV_END,
        cell_volumes as cell_volumes,
        sedov as sedov,
        shock_radius as shock_radius,
    )
    from .gas._shock_tube import (
        SOD as SOD,
        SOD_END as SOD_END,
        averaged_density as averaged_density,
        shock_tube as shock_tube,
        shock_tube_solution as shock_tube_solution,
        sod as sod,
    )
    from .gravity._giant_planets import (
        AU_IN_KM as AU_IN_KM,
        PLANETS as PLANETS,
        SOLAR_RADIUS as SOLAR_RADIUS,
        SUN_TO_PLANET as SUN_TO_PLANET,
        SolarTracks as SolarTracks,
        giant_planets as giant_planets,
        solar_tracks as solar_tracks,
    )
    from .gravity._orbits import (
        FIGURE_EIGHT_PERIOD as FIGURE_EIGHT_PERIOD,
        figure_eight as figure_eight,
        kepler as kepler,
    )
    from .gravity._particle_mesh_universe import (
        Phases as Phases,
        correlation_by_scale as correlation_by_scale,
        final_density as final_density,
        linear_density as linear_density,
        particle_mesh_universe as particle_mesh_universe,
        recover_phases as recover_phases,
        universe_density as universe_density,
        zeldovich_start as zeldovich_start,
    )
    from .gravity._weigh_planets import Weighing as Weighing, weigh_planets as weigh_planets
    from .gravity._zeldovich_pancake import (
        comoving_time as comoving_time,
        zeldovich_pancake as zeldovich_pancake,
        zeldovich_solution as zeldovich_solution,
    )
    from .molecular._argon import (
        ARGON_DIFFUSION as ARGON_DIFFUSION,
        ARGON_FIRST_PEAK as ARGON_FIRST_PEAK,
        K_B as K_B,
        SIGMA as ARGON_SIGMA,
        ArgonResults as ArgonResults,
        argon_results as argon_results,
        liquid_argon as liquid_argon,
        melt as melt,
    )
    from .molecular._double_well import (
        DOUBLE_WELL_RATE as DOUBLE_WELL_RATE,
        DoubleWell as DoubleWell,
        double_well as double_well,
        double_well_passage as double_well_passage,
    )
    from .molecular._fluid_structure import (
        FluidFit as FluidFit,
        SmallFluid as SmallFluid,
        Structure as Structure,
        fit_fluid as fit_fluid,
        fluid_structure as fluid_structure,
    )
    from .molecular._go_model import beta_hairpin as beta_hairpin, go_model as go_model
    from .molecular._kob_andersen import kob_andersen as kob_andersen
    from .molecular._lennard_jones_fluid import (
        FluidState as FluidState,
        lennard_jones_box as lennard_jones_box,
        lennard_jones_equation_of_state as lennard_jones_equation_of_state,
    )
    from .molecular._lennard_jones_melt import lennard_jones_melt as lennard_jones_melt
    from .molecular._peptide import alanine_dipeptide_pdb as alanine_dipeptide_pdb
    from .molecular._polymer_melt import kremer_grest_melt as kremer_grest_melt
    from .molecular._trp_cage import trp_cage as trp_cage
    from .molecular._water import (
        WATER_MODELS as WATER_MODELS,
        WaterModel as WaterModel,
        finite_size_correction as finite_size_correction,
        melt_water as melt_water,
        water_box as water_box,
    )
    from .pattern._complex_ginzburg_landau import (
        complex_ginzburg_landau as complex_ginzburg_landau,
    )
    from .pattern._phase_fields import (
        allen_cahn as allen_cahn,
        phase_field_crystal as phase_field_crystal,
        swift_hohenberg as swift_hohenberg,
    )
    from .pattern._porous_medium import (
        barenblatt_spot as barenblatt_spot,
        porous_medium as porous_medium,
    )
    from .pattern._spinodal_decomposition import spinodal_decomposition as spinodal_decomposition
    from .plasma._plasma_waves import (
        LANDAU_DAMPING as LANDAU_DAMPING,
        LANDAU_FREQUENCY as LANDAU_FREQUENCY,
        landau_damping as landau_damping,
        plasma_oscillation as plasma_oscillation,
        plasma_wave as plasma_wave,
        two_stream as two_stream,
    )
    from .plasma._two_species_plasma import (
        MASS_RATIO as MASS_RATIO,
        Ringing as Ringing,
        ringing as ringing,
        two_species_plasma as two_species_plasma,
    )
    from .plasma._weibel import (
        weibel_growth_rate as weibel_growth_rate,
        weibel_instability as weibel_instability,
    )
    from .quantum._hydrogen_molecule import (
        Hydrogen as Hydrogen,
        hydrogen_molecule as hydrogen_molecule,
    )
    from .quantum._ising_quench import ising_quench as ising_quench
    from .quantum._transmon_gate import TransmonGate as TransmonGate, transmon_gate as transmon_gate
    from .reaction._brusselator import brusselator as brusselator
    from .reaction._fisher_front import fisher_front as fisher_front
    from .reaction._fitzhugh_nagumo import fitzhugh_nagumo as fitzhugh_nagumo
    from .reaction._gray_scott import gray_scott as gray_scott
    from .reaction._keller_segel import keller_segel as keller_segel
    from .reaction._oregonator import oregonator as oregonator
    from .reaction._schloegl import schloegl as schloegl
    from .spin._spin_lattices import (
        ISING_TEMPERATURE as ISING_TEMPERATURE,
        OnsagerSolution as OnsagerSolution,
        ising_model as ising_model,
        onsager_solution as onsager_solution,
        potts_model as potts_model,
        potts_temperature as potts_temperature,
    )
    from .waves._burgers_wave import burgers_wave as burgers_wave, cole_hopf_wave as cole_hopf_wave
    from .waves._kuramoto_sivashinsky import kuramoto_sivashinsky as kuramoto_sivashinsky
    from .waves._plucked_string import plucked_string as plucked_string
    from .waves._solitons import kdv_solitons as kdv_solitons, soliton as soliton
    from .waves._wave_packets import (
        coherent_state as coherent_state,
        transmission as transmission,
        tunneling as tunneling,
        wave_packet as wave_packet,
    )
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)

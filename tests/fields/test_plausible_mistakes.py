"""First steps that look right and are not: each is refused by name, or taken as it was meant."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    AbstractTendency,
    Clock,
    DeclarationError,
    Fault,
    Health,
    ObserverError,
    ParameterError,
    PhyskitWarning,
    ShapeError,
    SimulationDiverged,
    StepCount,
    StepSizeError,
)
from physkit.fields import (
    AcousticField,
    ElasticField,
    ElectromagneticField,
    Field,
    FlowState,
)
from physkit.fields.equations import (
    Ball,
    Buoyancy,
    ContinuousWave,
    ConvolutionalPML,
    CurrentSheet,
    Dielectric,
    ElasticWaves,
    IncompressibleFlow,
    KSpaceAcoustics,
    Maxwell,
    PlaneWave,
    PointDipole,
    PointForce,
    PointSource,
    QuasiGeostrophic,
    ScalarTransport,
    VariableDiffusion,
    WavePulse,
)
from physkit.fields.lattice_boltzmann import LatticeBoltzmann, Populations, ShanChen
from physkit.geometry import (
    Box,
    Dirichlet,
    FixedPressure,
    Grid,
    Neumann,
    NoSlip,
    Outflow,
    Robin,
)
from physkit.integrators import ARS222, ETDRK2, RK4, StreamAndCollide
from physkit.observe import FarField, FluxSpectrum, NusseltNumber, Sensors
from physkit.simulate import Simulation, evaluate, simulate

BOX = Grid(Box([1.0, 1.0], periodic=False), (4, 4))


LINE = Grid(Box([1.0], periodic=False), (32,))


@pytest.mark.parametrize(
    ("side", "words"),
    [
        (Dirichlet(1.0), r"Dirichlet\(\[u, v\]\)"),
        (Dirichlet(lambda t, x, y: 4 * y * (1 - y)), r"return \(u, v\)"),
        (NoSlip(lambda t, x, y: jnp.cos(t)), r"return \(u, v\)"),
    ],
    ids=["number", "profile", "lid"],
)
@pytest.mark.parametrize("kind", ["faces", "lattice"])
def test_one_number_is_no_velocity(side, words, kind):
    """It was taken for all components: the flow came in at 45 degrees."""
    sides = {"x": (side, Outflow()), "y": NoSlip()}
    make = {"faces": FlowState.of, "lattice": lambda grid, **k: Populations.of(grid, 0.01, **k)}
    with pytest.raises(ParameterError, match=words):
        make[kind](BOX, boundary=sides)


def test_velocities_at_sides_that_are_velocities():
    for value in (0.0, [1.0, 0.0], lambda t, x, y: (4 * y * (1 - y), 0.0)):
        flow = FlowState.of(BOX, boundary={"x": (Dirichlet(value), Outflow()), "y": NoSlip()})
        assert flow.velocity_y.at_time(0.0).data.shape == (4, 5)


def test_values_over_other_points_are_named():
    with pytest.raises(ShapeError, match=r"\(4, 4\) for \(5, 4\) points at face\(x\)"):
        FlowState.of(BOX, [np.zeros((4, 4)), 0.0], NoSlip())


def test_fields_of_one_flow_are_in_one_box():
    """Boxes with the same cells and other lengths went unseen: a trace hides lengths."""
    other = Field(1.0, Grid(Box([2.0, 2.0], periodic=False), (4, 4)), None, Neumann(0.0))
    state = {"flow": FlowState.of(BOX, boundary=NoSlip()), "dye": other}
    flow = IncompressibleFlow(0.1, component="flow")
    for term in (ScalarTransport(0.1, component="dye"), Buoyancy([0.0, 1.0], scalar="dye")):
        with pytest.raises(ShapeError, match="box of lengths"):
            simulate(Simulation(ARS222(flow, term), dt=0.01), state, 1)
    plane = Grid([6.0, 6.0], (4, 4))
    ground = Field(1.0, Grid([1.0, 1.0], (4, 4)))
    law = QuasiGeostrophic(depth=(1.0, 1.0), coupling=(1.0,), topography=ground)
    with pytest.raises(ShapeError, match="box of lengths"):
        simulate(Simulation(RK4(law), dt=0.01), Field(jnp.zeros((2, 4, 4)), plane), 1)


@pytest.mark.parametrize("method", [RK4, ETDRK2])
def test_an_explicit_step_of_variable_diffusion_is_seen(method):
    """It grew to 1e245, which is finite."""
    rod = Field(1.0, LINE, None, Dirichlet(0.0))
    with pytest.raises(StepSizeError, match="of VariableDiffusion"):
        simulate(Simulation(method(VariableDiffusion(1.0)), dt=0.01), rod, 1)


def test_a_wall_of_a_line_is_one_point():
    rod = Field(1.0, LINE, None, {"x": (Dirichlet(1.0), Robin(jnp.ones(5), 0.3))})
    with pytest.raises(ShapeError, match="there is one point"):
        simulate(Simulation(ARS222(VariableDiffusion(1.0)), dt=0.01), rod, 1)


def test_nusselt_number_of_walls_in_kelvin():
    """ΔT is that of the walls; it was 1, so that Nu came out ten times as large."""
    for cold, hot in ((0.0, 1.0), (300.0, 310.0)):
        sides = {"x": (Dirichlet(hot), Dirichlet(cold)), "y": Neumann(0.0)}
        x, y = BOX.coordinates()
        rest = Field(hot + (cold - hot) * x + 0 * y, BOX, None, sides)
        law = Simulation(ARS222(VariableDiffusion(1.0)), dt=0.01)
        for side in ("x_low", "x_high"):
            found = evaluate(law, rest, nu=NusseltNumber(side))["nu"]
            assert found == pytest.approx(1.0, rel=1e-11)
        with pytest.raises(ObserverError, match="difference="):
            evaluate(law, rest, nu=NusseltNumber("y_low"))
        assert evaluate(law, rest, nu=NusseltNumber("y_low", difference=hot - cold))["nu"] == 0


def test_an_absorbing_layer_needs_a_side():
    """The default box repeats: the layer absorbed nothing."""
    with pytest.raises(DeclarationError, match="periodic=False"):
        ConvolutionalPML(4).sides_of(Grid([1.0, 1.0], (16, 16)))
    assert len(ConvolutionalPML(4).sides_of(Grid([1.0, 1.0], (16, 16)), at_seam=True)) == 4


class Source(AbstractTendency):
    """Whatever it is given, as its rate."""

    value: object

    def rate(self, clock, state):
        del clock, state
        return self.value


def test_an_array_is_the_rate_of_a_field():
    """Alone it was; beside a Diffusion trees were printed that cannot be added."""
    clock = Clock.at(StepCount.of(0), jnp.zeros(()), jnp.ones(()))
    rod, flow = Field(1.0, LINE, None, Dirichlet(0.0)), FlowState.of(BOX, boundary=NoSlip())
    rate, _ = Source(jnp.ones(32))(clock, rod, None)
    assert (rate.location, rate.values.shape) == (LINE.cell, (32,))
    rate, _ = Source({"velocity_x": jnp.ones((5, 4))})(clock, flow, None)
    assert rate["velocity_x"].location == flow.velocity_x.location
    with pytest.raises(ShapeError, match=r"FlowState is a dict .*'velocity_x'.*got an array"):
        Source(jnp.ones((4, 4)))(clock, flow, None)
    with pytest.raises(ShapeError, match=r"the rate of a field is an array .*; got a NoSlip"):
        Source(NoSlip())(clock, rod, None)


def test_densities_of_a_lattice_are_positive_and_given_once():
    """A density beside a pressure went unused; negative ones ran."""
    with pytest.raises(ParameterError, match="give one of them"):
        Populations.of(BOX, 0.01, pressure=1.0, density_ratio=1.0)
    for what in ({"pressure": -1e4}, {"density_ratio": lambda x, y: x - 0.5}):
        with pytest.raises(ParameterError, match="the smallest density is -"):
            Populations.of(BOX, 0.01, boundary=NoSlip(), **what)
    with pytest.raises(ParameterError, match="wall_density must not be negative"):
        ShanChen(wall_density=-0.1)
    flow = Populations.of(
        BOX, 0.01, boundary={"x": (FixedPressure(-1e4), Outflow()), "y": NoSlip()}
    )
    with pytest.raises(ParameterError, match="the smallest density is -"):
        LatticeBoltzmann(0.1).check_step(flow, jnp.asarray(0.01))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault.UNRESOLVED, "faster than its sound.*time_step"),
        (Fault.NOT_FINITE, r"τ|relaxation_time.*CentralMoments"),
        (Fault.POSITIVITY, "density of the lattice fluid"),
    ],
)
def test_faults_of_a_lattice_say_what_helps_there(fault, words):
    """They said to reduce dt, which a lattice ties to its cells."""
    sim = Simulation(StreamAndCollide(LatticeBoltzmann(0.1)), dt=0.01)
    with pytest.raises(SimulationDiverged, match=words):
        Health(jnp.int32(fault)).check("here", sim=sim)
    with pytest.raises(SimulationDiverged, match=r"^(?!.*lattice fluid)"):
        Health(jnp.int32(fault)).check("here", sim=Simulation(RK4(VariableDiffusion(1.0)), dt=1.0))


SQUARE = Grid(Box([2.0, 2.0], periodic=False), (40, 40))


WAVE = ContinuousWave(2 * jnp.pi)


def start_light(sources=(), media=(), layer=None, mode="TM"):
    maxwell = Maxwell(media, sources, layer)
    maxwell.check_state(maxwell.add_memory(ElectromagneticField.of(SQUARE, mode=mode)))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (PointDipole([2.5, 1.0], "Ez", WAVE), r"a dipole at \[2\.5, 1\.0\] is outside of the box"),
        (CurrentSheet("y", -0.1, "Ez", WAVE), r"a sheet at \[1\.0, -0\.1\] is outside"),
        (PointDipole([1.0, 1.9], "Ez", WAVE), "a dipole .* within the absorbing layer at y_high"),
        (CurrentSheet("x", 0.2, "Ez", WAVE), "a sheet .* within the absorbing layer at x_low"),
        (PointDipole([1.0, 1.0], "Ex", WAVE), 'along Ex drives nothing: this field has Ez.*"TE"'),
        (PlaneWave([1.0, 0.0], [0, 1.0, 0], WAVE), "polarized along Ey drives nothing"),
        (PointDipole([1.0, 1.0], "Ez", ContinuousWave(1e3)), r"0\.13 cells.*radians / time"),
    ],
)
def test_sources_of_light_that_send_nothing_are_refused(source, words):
    """Each ran, and the field stayed 0 or all but 0."""
    with pytest.raises(ParameterError, match=words):
        start_light(source, layer=ConvolutionalPML(8))
    start_light((PointDipole([1.0, 1.0], "Ez", WAVE), CurrentSheet("x", 1.0, "Ez", WAVE)))


def test_light_of_few_cells_and_bodies_outside_are_warned_of():
    dipole = PointDipole([1.0, 1.0], "Ez", WAVE)
    with pytest.warns(PhyskitWarning, match=r"2\.8 cells long where they are slowest: below 5"):
        start_light(dipole, Dielectric(50.0, shape=Ball([1.0, 1.0], 0.3)))
    far, near = (Dielectric(2.0, shape=Ball([x, 1.0], 0.3)) for x in (2.4, 2.2))
    with pytest.warns(PhyskitWarning, match="1 of 2 bodies .Dielectric. are outside of the box"):
        start_light(dipole, (far, near))
    start_light(dipole, near)
    jax.jit(lambda: start_light(dipole, far))()


def test_thin_layers_and_pulses_under_way_are_warned_of():
    with pytest.warns(PhyskitWarning, match="layer of 2 cells sends back 13 %"):
        ConvolutionalPML(2)
    pulse, t = WavePulse(2 * jnp.pi, 0.5, 1.0), jnp.zeros(())
    for waves in (
        Maxwell(sources=PointDipole([1.0, 1.0], "Ez", pulse)),
        KSpaceAcoustics(sources=PointSource([1.0, 1.0], pulse)),
        ElasticWaves(sources=PointForce([1.0, 1.0], [1.0, 0.0], pulse)),
    ):
        with pytest.warns(PhyskitWarning, match="WavePulse .*begins at 14% of its peak: a jump"):
            waves.check_time(None, t)
        waves.check_time(None, t - 2.0)
        eqx.filter_jit(waves.check_time)(None, t)


def test_sources_and_sensors_of_sound_stay_before_layers():
    """They share the checks with light; a sensor in a layer read waves that had died."""
    layer, torus = ConvolutionalPML(8), Grid(Box([2.0, 2.0]), (40, 40))
    hydrophone = lambda x: Sensors([[1.0, 1.0], [x, 1.0]], "pressure")
    for waves, field in (
        (
            KSpaceAcoustics(sources=PointSource([0.2, 1.0], WAVE), layer=layer),
            AcousticField.of(torus),
        ),
        (
            ElasticWaves(sources=PointForce([0.2, 1.0], [1.0, 0.0], WAVE), layer=layer),
            ElasticField.of(SQUARE),
        ),
    ):
        state = waves.add_memory(field)
        with pytest.raises(ParameterError, match="within the absorbing layer at x_low"):
            waves.check_state(state)
        fast = eqx.tree_at(lambda w: w.sources[0].position, waves, jnp.array([1.0, 1.0]))
        fast.check_state(state)
        fast = eqx.tree_at(lambda w: w.sources[0].waveform.frequency, fast, jnp.array(1e4))
        with pytest.raises(ParameterError, match="a grid carries none below 2"):
            fast.check_state(state)
    sound = KSpaceAcoustics(layer=layer).add_memory(AcousticField.of(torus))
    hydrophone(1.5).check_start(sound)
    with pytest.warns(PhyskitWarning, match=r"a sensor .number 1 of 2. is within .* at x_high"):
        hydrophone(1.9).check_start(sound)
    light = Maxwell(layer=layer).add_memory(ElectromagneticField.of(SQUARE))
    FluxSpectrum(1, "x", 1.0, [6.28]).check_start(light)
    with pytest.warns(PhyskitWarning, match="plane of a FluxSpectrum is within .* at x_low"):
        FluxSpectrum(1, "x", 0.3, [6.28]).check_start(light)
    with pytest.warns(PhyskitWarning, match="corner of the box of a FarField .* at y_high"):
        FarField(1, [0.5, 0.5], [1.5, 1.8], [6.28], [[1.0, 0.0]]).check_start(light)

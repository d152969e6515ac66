"""Pictures of physkit's files in the programs of others, for docs/images.

python docs/reader_pictures.py write FOLDER      with physkit
python docs/reader_pictures.py draw FOLDER       with MDAnalysis, pyvista, xarray
"""

import sys
from pathlib import Path

IMAGES = Path(__file__).parent / "images"


def write(folder: Path) -> None:
    """A liquid, a flow in two dimensions, and a gas in three."""
    import jax

    import physkit as pk

    position, box = pk.lattice.face_centered_cubic(cells=(5, 5, 5), density=0.8442)
    atoms = pk.Particles(position, space=box)
    atoms = pk.maxwell_boltzmann(jax.random.key(0), atoms, temperature=1.44)
    force = pk.Pairwise(pk.LennardJones(), cutoff=2.5)
    record = pk.Every(25, x=pk.Positions(), v=pk.Velocities())
    melt = pk.Simulation(pk.VelocityVerlet(force), 0.004, observers=record)
    pk.run(melt, atoms, 1000, to=folder / "melt")
    pk.export(folder / "melt", folder / "melt.extxyz")

    grid = pk.Grid([6.2832, 6.2832], (128, 128))
    eddies = 20.0 * jax.random.normal(jax.random.key(0), grid.shape)
    vorticity = pk.Field(eddies, grid).spectrum().dealiased().field()
    flow = pk.ETDRK2(pk.equations.VorticityTransport(viscosity=2e-3))
    record = pk.Every(50, vorticity=pk.FieldValues())
    pk.run(pk.Simulation(flow, 0.01, observers=record), vorticity, 1000, to=folder / "flow")

    grid = pk.Grid([6.2832] * 3, (48, 48, 48))
    start = pk.Field(jax.random.normal(jax.random.key(1), grid.shape), grid)
    phases = pk.ETDRK2(pk.equations.Diffusion(0.1), pk.equations.FisherKPP(4.0))
    smooth = pk.simulate(pk.Simulation(pk.ETDRK2(pk.equations.Diffusion(0.2)), 0.8), start, 1).state
    blobs = smooth.replace(data=jax.nn.sigmoid(400 * smooth.data))
    record = pk.Every(2, u=pk.FieldValues())
    pk.run(pk.Simulation(phases, 0.01, observers=record), blobs, 20, to=folder / "space")


def draw(folder: Path) -> None:
    """One picture per reader."""
    import matplotlib

    matplotlib.use("Agg")
    mdanalysis(folder)
    pyvista(folder)
    xarray(folder)


def mdanalysis(folder: Path) -> None:
    """The distances that its InterRDF finds in the trajectory, and how far atoms went."""
    import matplotlib.pyplot as plt
    import MDAnalysis
    from MDAnalysis.analysis.rdf import InterRDF

    u = MDAnalysis.Universe.empty(500, velocities=True)
    u.load_new(str(folder / "melt" / "trajectory.h5md"), format="H5MD", convert_units=False)
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    for start, stop, label in ((0, 1, "first frame"), (20, None, "second half")):
        found = InterRDF(u.atoms, u.atoms, nbins=120, range=(0.5, 4), exclusion_block=(1, 1))
        found.run(start=start, stop=stop)
        axes[0].plot(found.results.bins, found.results.rdf, label=label)
    axes[0].set(xlabel="r", ylabel="g(r)", ylim=(0, 6), title="MDAnalysis InterRDF")
    axes[0].legend(frameon=False)
    time, kinetic = [], []
    for now in u.trajectory:
        time.append(now.time)
        kinetic.append((now.velocities**2).sum() / (3 * 500))
    axes[1].plot(time, kinetic)
    axes[1].set(
        xlabel="time", ylabel="temperature", title=f"{len(u.trajectory)} frames of velocities"
    )
    figure.savefig(IMAGES / "reader-mdanalysis.png", dpi=110)


def pyvista(folder: Path) -> None:
    """A plane as cells, and a surface in space."""
    import pyvista as pv

    plotter = pv.Plotter(off_screen=True, shape=(1, 2), window_size=(1100, 520), border=False)
    reader = pv.get_reader(str(folder / "flow" / "fields.vtkhdf"))
    reader.reader.SetStep(20)
    plotter.add_mesh(
        reader.read(), scalars="vorticity", cmap="RdBu_r", clim=(-6, 6), lighting=False
    )
    plotter.add_text("flow/fields.vtkhdf, step 20", font_size=9)
    plotter.view_xy()
    plotter.subplot(0, 1)
    reader = pv.get_reader(str(folder / "space" / "fields.vtkhdf"))
    reader.reader.SetStep(10)
    mesh = reader.read().cell_data_to_point_data()
    plotter.add_mesh(mesh.contour([0.6]), scalars=None, color="#3f7fb5", smooth_shading=True)
    plotter.add_mesh(mesh.outline(), color="black")
    plotter.add_text("space/fields.vtkhdf, u = 0.6", font_size=9)
    plotter.screenshot(str(IMAGES / "reader-pyvista.png"))


def xarray(folder: Path) -> None:
    """Frames selected by time."""
    import xarray as xr

    data = xr.open_dataset(folder / "flow" / "fields.vtkhdf", engine="h5netcdf")
    shown = data.vorticity.isel(z=0).sel(time=[1.0, 3.0, 10.0], method="nearest")
    drawn = shown.plot(x="x", y="y", col="time", cmap="RdBu_r", vmin=-8, vmax=8, size=3.2, aspect=1)
    drawn.fig.savefig(IMAGES / "reader-xarray.png", dpi=100)


if __name__ == "__main__":
    {"write": write, "draw": draw}[sys.argv[1]](Path(sys.argv[2]))

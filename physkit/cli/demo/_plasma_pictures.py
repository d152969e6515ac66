"""Pictures of the chapter on the plasma."""

from pathlib import Path

from matplotlib.figure import Figure

from physkit import plot
from physkit.simulate import Run
from physkit.systems import MASS_RATIO, Ringing


def draw_ringing(done: Run, found: Ringing, path: Path) -> None:
    """Electrons and ions swing against each other; the sinusoid that gives the frequency."""
    time = done.times["electrons"]
    with plot.style():
        figure = Figure(figsize=(9.6, 4.6), layout="constrained")
        electrons, ions = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        for ax in (electrons, ions):
            plot.apply_style(ax)
        electrons.plot(
            time[::4], 1e3 * done["electrons"][::4], ".", ms=4, color="#777777", label="electrons"
        )
        electrons.plot(
            time, 1e3 * found.curve, lw=1.2, color=plot.PALETTE[0],
            label=rf"fit: $\omega$ = {found.frequency:.4f} $\omega_e$",
        )  # fmt: skip
        ions.plot(
            time,
            1e3 * done["ions"],
            lw=1.4,
            color=plot.PALETTE[1],
            label=f"ions, {MASS_RATIO:.0f} times as heavy",
        )
        for ax in (electrons, ions):
            ax.set_ylabel(r"$10^3\,\delta n/n$")
            ax.set_xlim(0, time[-1])
            # Room for the legend above the curves.
            low, high = ax.get_ylim()
            ax.set_ylim(low, high + 0.3 * (high - low))
            ax.legend(loc="upper right", ncols=2, frameon=False)
        ions.set_xlabel(r"time / $\omega_e^{-1}$")
        figure.savefig(path, dpi=160)


def draw_energy(done: Run, found: Ringing, path: Path) -> None:
    """The field's energy becomes motion and comes back."""
    del found
    time, top = done.times["kinetic"], float(done["potential"][0])
    shown = time <= 20
    with plot.style():
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        ax = figure.add_subplot()
        plot.apply_style(ax)
        for name, label, color in (
            ("potential", "field", plot.PALETTE[0]),
            ("kinetic", "motion", plot.PALETTE[1]),
        ):
            ax.plot(time[shown], done[name][shown] / top, color=color, label=label)
        total = (done["kinetic"] + done["potential"]) / top
        ax.plot(time[shown], total[shown], color="#333333", label="together")
        ax.set(
            xlabel=r"time / $\omega_e^{-1}$",
            ylabel="energy / energy at the start",
            ylim=(0, 1.25),
            xlim=(0, 20),
        )
        ax.legend(loc="upper right", ncols=3, frameon=False)
        figure.savefig(path, dpi=160)

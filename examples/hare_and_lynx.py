"""Hares and lynx: rates of growth and predation from twenty-one years of pelts.

The Hudson's Bay Company counted what trappers brought. Four rates and both numbers of 1900 are fitted
through the simulation, by least squares of logarithms; the table gives their errors.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

jax.config.update("jax_enable_x64", True)
pk.use_compilation_cache()

data = pk.systems.pelts()
found = pk.systems.fit_pelts(data, progress=False)
print(found)

before = data.taken * np.exp(found.residuals_before)
after = data.taken * np.exp(found.residuals)
with pk.plot.style():
    figure = plt.figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplot_mosaic(
        [["pelts", "table"], ["left", "table"]], width_ratios=(1.6, 1), height_ratios=(3, 1)
    )
pk.plot.fit(
    data.year, data.taken, before, after, axes=(axes["pelts"], axes["left"]), names=("hares", "lynx"),
    label="pelts", unit="1000", x_label="year",
)  # fmt: skip
pk.plot.fit_correlations(found, ax=axes["table"])
for ax in (axes["pelts"], axes["left"]):
    ax.set_xticks(range(1900, 1921, 5))
axes["pelts"].set_title("Lotka and Volterra's equations, fitted to pelts")
axes["table"].set_title("Correlations of the fit")
figure.savefig("hare_and_lynx.png", dpi=150)

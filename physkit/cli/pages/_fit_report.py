"""The report of a fit, an audit or a posterior: what was found, how far to trust it, and what it leaves."""

from pathlib import Path
from typing import Any

import numpy as np

from physkit.ensemble import SEARCH_FILE, read_generations
from physkit.fit import AUDIT_FILE, FIT_FILE, SAMPLES_FILE, Fit, GradientAudit
from physkit.html import Markup, escape, expandable, facts, paragraph, table
from physkit.inference import PosteriorSamples
from physkit.plot import PALETTE, corner, fit_correlations, fit_history
from physkit.storage import read_table

from ..common._recordings import result_files
from ..common._report import format_duration
from ..common._types import Axes
from ._report_pictures import chapter, draw_figure, draw_picture, lay_out

_MAX_PICTURES = 12  # of residuals
_MAX_CORNER = 6  # numbers in a corner plot
_DRAWS = 20_000  # of a normal distribution, for its contours
_MAX_POINTS = 5000  # of a curve
_SAME_LOSS = 1e-6  # relative difference of losses at one minimum
_ORIGIN = ("written", "command", "physkit", "jax", "python", "precision", "devices")
_INK, _FAINT = "#333333", "#9aa0a6"


def results_page(folder: Path) -> tuple[str, str, bool]:
    """Title, body, and whether the fit has converged and every audited derivative is right."""
    kinds = dict(zip(result_files(), ("Fit", "Audit", "Posterior", "Search"), strict=True))
    kind = next(kind for name, kind in kinds.items() if (folder / name).is_file())
    title = f"{kind} {folder.resolve().name}"
    body, is_good = result_chapters(folder)
    return title, f"<h1>{escape(title)}</h1>" + body, is_good


def result_chapters(folder: Path) -> tuple[str, bool]:
    """What stands in the folder of fit, posterior and audit; nothing where there is none of them."""
    body, is_good = "", True
    if (folder / FIT_FILE).is_file():
        found = Fit.load(folder)
        body += _fit_chapters(folder, found)
        is_good &= found.converged
    elif (folder / SEARCH_FILE).is_file():
        body += _search_chapter(read_generations(folder))
        is_good = False
    if (folder / SAMPLES_FILE).is_file():
        body += _posterior_chapter(PosteriorSamples.load(folder))
    if (folder / AUDIT_FILE).is_file():
        audit = GradientAudit.load(folder)
        body += chapter("Are the derivatives right?", audit._repr_html_())
        is_good &= audit.ok
    return body, is_good


def _fit_chapters(folder: Path, found: Fit) -> str:
    origin = read_table(folder / FIT_FILE, "fit").metadata.get("provenance")
    origin = origin if isinstance(origin, dict) else {}
    unit = "generations" if hasattr(found.history, "sigma") else "steps"
    rows: dict[str, object] = {
        "folder": folder.resolve(),
        "method": found.method,
        "residuals": found.count or "none: a loss",
        "effort": f"{found.steps} {unit}, {format_duration(found.seconds)}",
        "why it ended": found.reason,
    }
    body = facts(rows | {key: origin[key] for key in _ORIGIN if key in origin})
    body += chapter("What was found", found._repr_html_())
    body += chapter("How it went", lay_out(_descent(found)) + _starts(found))
    body += chapter("How well the data know it", lay_out(_knowledge(found)))
    body += chapter("What it leaves", lay_out(_residuals(found)))
    return body


def _search_chapter(generations: list[np.ndarray]) -> str:
    """A search that has not ended."""
    body = paragraph(f"NOT finished: {len(generations)} generations so far", "wrong")

    def draw(ax: Axes) -> None:
        evaluations = np.cumsum([losses.size for losses in generations])
        finite = [np.where(np.isfinite(losses), losses, np.nan) for losses in generations]
        best = np.array([np.nanmin(losses, initial=np.inf) for losses in finite])
        ax.plot(evaluations, np.minimum.accumulate(best), color=PALETTE[0], label="lowest loss")
        ax.plot(evaluations, [np.nanmedian(losses) for losses in finite], color=PALETTE[1],
                linewidth=0.9, label="median of generation")  # fmt: skip
        ax.set_yscale("log" if np.all(best > 0) else "symlog")
        ax.set_xlabel("evaluations of the loss")
        ax.legend(frameon=False, fontsize=8)

    return body + (draw_picture(draw, "generations so far", (5.2, 3.2)) if generations else "")


def _descent(found: Fit) -> list[Markup]:
    pictures = [
        draw_picture(lambda ax: fit_history(found, ax=ax), "the loss on its way", (4.6, 3.2))
    ]
    losses = np.sort([one.loss for one in found.attempts if np.isfinite(one.loss)])
    # Of starts that all end at the same minimum there is nothing to see.
    if len(losses) > 2 and np.ptp(losses) > _SAME_LOSS * np.abs(losses).max():

        def draw(ax: Axes) -> None:
            ax.plot(np.arange(1, len(losses) + 1), losses, "o-", color=PALETTE[0], markersize=4)
            ax.set_xlabel("start, best first")
            ax.set_ylabel("loss at its end")
            if losses[0] > 0 and losses[-1] > 20 * losses[0]:
                ax.set_yscale("log")

        pictures.append(draw_picture(draw, f"{len(losses)} starts: are there several minima?"))
    return pictures


def _starts(found: Fit) -> str:
    if len(found.attempts) < 2:
        return ""
    rows = []
    for k, one in enumerate(found.attempts):
        state = "DIVERGED" if one.diverged else ("converged" if one.converged else "not converged")
        began = ", ".join(f"{x:.4g}" for v in one.start.values() for x in np.ravel(v)[:3])
        rows.append((k, f"{one.loss:.6g}", one.steps, state, began))
    losses = [one.loss for one in found.attempts if not one.diverged]
    same = sum(abs(x - min(losses)) <= _SAME_LOSS * abs(min(losses)) for x in losses)
    note = paragraph(f"{same} of {len(found.attempts)} starts end at the lowest loss")
    return note + expandable("every start", table(("start", "loss", "steps", "", "from"), rows))


def _knowledge(found: Fit) -> list[Markup]:
    """Correlations, a corner plot of the errors and Fisher's spectrum, of fits with standard errors."""
    if found.covariance is None or len(found.labels) < 2:
        return []
    pictures = []
    known = np.all(np.isfinite(found.covariance))
    center = np.concatenate([np.ravel(x) for x in found.values.values()]).astype(float)
    if known and len(found.labels) <= _MAX_CORNER:
        rng = np.random.default_rng(0)
        draws = rng.multivariate_normal(
            center, found.covariance, size=_DRAWS, method="svd", check_valid="ignore"
        )
        about = "standard errors as a normal distribution: 50 and 90 % of it"
        pictures.append(draw_figure(_corner_figure(draws, found.labels), about))
    if len(found.labels) <= 40:
        caption = "correlations of the errors"
        pictures.append(
            draw_picture(lambda ax: fit_correlations(found, ax=ax), caption, (4.4, 3.8))
        )
    if found.spectrum is not None:
        pictures.append(draw_picture(_draws_spectrum(found.spectrum), "Fisher's information"))
    return pictures


def _corner_figure(draws: np.ndarray, labels: tuple[str, ...]) -> Any:
    return corner(draws, labels=labels, size=1.5)[0, 0].figure


def _draws_spectrum(spectrum: Any):
    def draw(ax: Axes) -> None:
        values = np.asarray(spectrum.eigenvalues, float)
        where = np.arange(1, len(values) + 1)
        # Errors along the directions, in units of the parameters: 1 is as large as they are.
        errors = np.where(values > 0, 1 / np.sqrt(np.where(values > 0, values, 1)), np.nan)
        ax.plot(where, errors, "o", color=PALETTE[0], markersize=5)
        ax.axhline(1.0, color=_FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
        ax.set_yscale("log")
        ax.set_xlabel("combination of parameters")
        ax.set_ylabel("relative standard error")
        if len(values) <= 10:
            ax.set_xticks(where)

    return draw


def _residuals(found: Fit) -> list[Markup]:
    """What is left, in order and as a distribution beside the normal one."""
    if found.residuals is None:
        return []
    after = _by_name(found.residuals)
    before = _by_name(found.residuals_before)
    pictures = []
    for name, values in after.items():
        if len(pictures) >= _MAX_PICTURES:
            break
        title = f"residuals {name}".strip()
        old = before.get(name, np.zeros(0))
        pictures.append(draw_picture(_draws_residuals(values, old), f"{title}, in their order"))
        if values.size >= 8 and np.std(values) > 0:
            pictures.append(
                draw_picture(_draws_quantiles(values), f"{title} beside a normal distribution")
            )
    return pictures


def _draws_residuals(after: np.ndarray, before: np.ndarray):
    def draw(ax: Axes) -> None:
        size = 3 if after.size > 60 else 4
        some = slice(None, None, max(after.size // _MAX_POINTS, 1))
        order = np.arange(after.size)[some]
        if before.size == after.size:
            ax.plot(order, before[some], ".", color=_FAINT, markersize=size, label="start")
        ax.plot(order, after[some], ".", color=PALETTE[0], markersize=size, label="fit")
        ax.axhline(0, color=_INK, linewidth=0.8)
        largest = np.nanmax(np.abs(after), initial=0.0)
        if before.size and largest > 0 and np.nanmax(np.abs(before), initial=0.0) > 10 * largest:
            # Small ones remain visible beside those of the start.
            ax.set_yscale("symlog", linthresh=2 * largest)
        ax.set_xlabel("number of the residual")
        ax.set_ylabel("residual")
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=8)

    return draw


def _draws_quantiles(values: np.ndarray):
    from jax.scipy.special import ndtri

    def draw(ax: Axes) -> None:
        ordered = np.sort(values[np.isfinite(values)])
        some = slice(None, None, max(ordered.size // _MAX_POINTS, 1))
        expected = np.asarray(ndtri((np.arange(ordered.size)[some] + 0.5) / ordered.size))
        ends = np.array([expected.min(), expected.max()])
        ax.plot(ends, ordered.mean() + ends * ordered.std(), color=_INK, linewidth=0.9)
        ax.plot(expected, ordered[some], ".", color=PALETTE[0], markersize=4)
        ax.set_xlabel("quantile of a normal distribution")
        ax.set_ylabel("residual")

    return draw


def _by_name(tree: Any) -> dict[str, np.ndarray]:
    if tree is None:
        return {}
    parts = tree if isinstance(tree, dict) else {"": tree}
    return {name: np.ravel(np.asarray(x, float)) for name, x in parts.items()}


def _posterior_chapter(saved: PosteriorSamples) -> str:
    draws, labels = saved.table, saved.labels
    flat = draws.reshape(-1, draws.shape[-1])
    columns = [saved.bulk_sample_size, saved.tail_sample_size, saved.r_hat]
    quantiles = np.quantile(flat, (0.05, 0.5, 0.95), axis=0)
    rows = [
        (label, *(f"{x:.4g}" for x in (flat[:, k].mean(), flat[:, k].std(), *quantiles[:, k])),
         *(f"{c[k]:.0f}" for c in columns[:2]), f"{columns[2][k]:.3f}")
        for k, label in enumerate(labels)
    ]  # fmt: skip
    header = ("parameter", "mean", "± std", "5 %", "median", "95 %", "bulk", "tail", "R̂")
    count = f"{draws.shape[0]} chains of {draws.shape[1]} draws"
    body = paragraph(f"{count}, {saved.num_divergent} transitions diverged")
    body += table(header, rows)
    body += "".join(paragraph(f"! {remark}") for remark in saved.remarks)
    if 2 <= len(labels) <= _MAX_CORNER:
        figure = _corner_figure(flat, labels)
        body += lay_out([draw_figure(figure, "draws, with 50 and 90 % of them in contours")])
    return chapter("Posterior", body)

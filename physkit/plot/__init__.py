"""Pictures. Small functions that take data, draw with matplotlib and return the Axes."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._animate import animate as animate
    from ._corner import corner as corner
    from ._correlation_functions import (
        correlation as correlation,
        mean_square_displacement as mean_square_displacement,
        radial_distribution as radial_distribution,
        structure_factor as structure_factor,
    )
    from ._ensembles import (
        fan as fan,
        heat_map as heat_map,
        parallel_coordinates as parallel_coordinates,
    )
    from ._fits import (
        fit as fit,
        fit_correlations as fit_correlations,
        fit_history as fit_history,
    )
    from ._gradient_growth import gradient_growth as gradient_growth
    from ._particles import particles as particles
    from ._paths import phase_space as phase_space, trajectories as trajectories
    from ._recording import (
        recorded_field as recorded_field,
        recording as recording,
        shows_one_frame as shows_one_frame,
    )
    from ._series import drift as drift, series as series
    from ._style import (
        PALETTE as PALETTE,
        apply_style as apply_style,
        as_label as as_label,
        axes as axes,
        axis_label as axis_label,
        style as style,
    )
    from .fields._fields import arrows as arrows, field as field, spectrum as spectrum
    from .fields._globe import globe as globe
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)

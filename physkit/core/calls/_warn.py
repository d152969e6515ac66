"""Warnings, which point at the user's line."""

import sys
import warnings

from .._errors import PhyskitWarning
from .outside._code import is_users_frame


def warn(text: str) -> None:
    """Warn with a `PhyskitWarning` of the line of the user's code that has led here, however deep it is.

    Python shows a text once for each line, so that a loop says it once. Where there is no such line, as in
    a command, the place is that of the caller.
    """
    frame = sys._getframe(1)
    while frame is not None and not is_users_frame(frame):
        frame = frame.f_back
    if frame is None:
        warnings.warn(text, PhyskitWarning, stacklevel=2)
        return
    warnings.warn_explicit(
        text,
        PhyskitWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__", "<unknown>"),
        frame.f_globals.setdefault("__warningregistry__", {}),
    )

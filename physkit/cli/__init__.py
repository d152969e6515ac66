"""The command line. An application, so it may choose precision; JAX waits for a verb."""

from ._main import main as main
from .common._report import Report as Report

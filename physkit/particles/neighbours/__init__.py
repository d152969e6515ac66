"""Neighbours: which pairs are close enough to matter."""

from ._pairs import (
    AbstractPairs as AbstractPairs,
    EveryPair as EveryPair,
    ListedPairs as ListedPairs,
)

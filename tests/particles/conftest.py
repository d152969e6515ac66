"""What tests of particles have in common."""

import pytest

from physkit.particles.forces.pairs import _pairwise


@pytest.fixture
def small_systems_keep_lists(monkeypatch):
    """Systems small enough for a test would go without."""
    monkeypatch.setattr(_pairwise, "ALL_PAIRS_UP_TO", 0)

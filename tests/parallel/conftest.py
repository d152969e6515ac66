"""What tests of several devices have in common."""

import pytest


@pytest.fixture
def emulated(monkeypatch):
    """Devices are emulated on one."""
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")

"""Programs for other platforms hold no C code, which is for CPUs."""

import jax
import pytest


@pytest.fixture(autouse=True)
def without_native_code(monkeypatch):
    monkeypatch.setenv("PHYSKIT_NATIVE", "0")
    jax.clear_caches()  # what was traced before holds it
    yield
    jax.clear_caches()

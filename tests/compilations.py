"""Counts what JAX compiles."""

import contextlib
from collections.abc import Iterator

import jax


@contextlib.contextmanager
def compiled_programs() -> Iterator[list[str]]:
    """A list that grows by an entry for each program that is compiled, or read from the cache on disk."""
    programs: list[str] = []

    def listen(event: str, seconds: float, **more: object) -> None:
        del seconds
        if event.endswith("backend_compile_duration"):
            programs.append(str(more.get("fun_name")))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield programs
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)

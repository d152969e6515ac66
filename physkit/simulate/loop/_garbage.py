"""Programs are traced and compiled without a search for garbage in between."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_inside = 0  # how many blocks, of all threads, are open
_was_enabled = False  # before the first of them


@contextmanager
def without_garbage_collection(compiles: bool = True) -> Iterator[None]:
    """Python does not look for cycles of garbage inside this block, in any thread, if the block `compiles`.

    A trace makes some 10⁵ objects that stay. Again and again the collector then goes over all objects of the
    process, those of JAX's modules included, and finds nothing: a sixth of a first run whose compiled programs
    come from the cache. For blocks of seconds; what is in no cycle is freed at once, as ever.
    """
    global _inside, _was_enabled
    if not compiles:
        yield
        return
    is_inside = False
    try:
        with _lock:
            if _inside == 0:
                _was_enabled = gc.isenabled()
                gc.disable()
            _inside += 1
            is_inside = True
        yield
    finally:
        with _lock:
            _inside -= is_inside
            if _inside == 0 and _was_enabled:
                gc.enable()

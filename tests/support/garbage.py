"""The collector of garbage, where its moment would decide about a test."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Nothing is collected inside the block. The garbage of before is collected first."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

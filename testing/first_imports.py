"""No garbage collections while the modules of a broker are imported: these were a tenth of the time of a first start.

Imports make hundreds of thousands of objects that stay, and each collection looks at many of them. Afterwards they
belong to the oldest generation, as if they had survived: else the next collection would look at all of them at once.
"""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def without_collections(module: str) -> Iterator[None]:
    """Collections wait until the end of a block that imports `module`, if it is not there yet and they are on."""
    if module in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # else the program keeps objects apart, and unfreezing would end that
            gc.freeze()
            gc.unfreeze()
        gc.enable()

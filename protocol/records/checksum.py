"""CRC-32C over any buffer, by the `crc32c` package's compiled function.

The package's `__init__` imports importlib.metadata to learn its own version (45-65 ms, a fifth of our start-up
budget), hence its extension module is loaded directly; where that is not possible, the package itself is used.

Kafka: Crc32C.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TypeAlias, cast

Crc32c: TypeAlias = Callable[[bytes | bytearray | memoryview, int, int], int]


def _load() -> Crc32c:
    package = PathFinder.find_spec("crc32c")
    if package is not None and package.submodule_search_locations is not None:
        extension = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
        if extension is not None and extension.loader is not None:
            module = module_from_spec(extension)
            extension.loader.exec_module(module)
            return cast(Crc32c, module.crc32c)
    from crc32c import crc32c as packaged

    return cast(Crc32c, packaged)


crc32c: Crc32c = _load()
"""`crc32c(data, previous_crc, gil_release_mode)`: mode 0 keeps the GIL (cheaper up to about 1 MB), -1 releases it for
large buffers."""

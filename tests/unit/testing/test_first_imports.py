from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from odradek.testing.first_imports import without_collections

ABSENT = "no_such_module"

COLLECTIONS_MAX = 10
"""About 90 without the pause."""

MAKE_OBJECTS = """
import gc
from odradek.testing.first_imports import without_collections
with without_collections("absent"):
    made = [[] for _ in range(5_000)]
print(any(each is made for each in gc.get_objects(generation=2)), gc.get_freeze_count())
"""

FIRST_START = """
import gc
import odradek.testing
begun = []
gc.callbacks.append(lambda phase, _: begun.append(phase) if phase == "start" else None)
with odradek.testing.Broker():
    print(len(begun))
"""


def test_collections_rest_while_a_module_is_imported_for_the_first_time() -> None:
    assert ABSENT not in sys.modules
    with without_collections(ABSENT):
        assert not gc.isenabled()
    assert gc.isenabled()
    with without_collections("sys"):
        assert gc.isenabled()


def test_what_was_made_is_not_young_afterwards() -> None:
    done = subprocess.run([sys.executable, "-c", MAKE_OBJECTS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "0"]


def test_objects_that_a_program_keeps_apart_stay_so() -> None:
    gc.freeze()
    try:
        with without_collections(ABSENT):
            pass
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


def test_they_go_on_after_an_error() -> None:
    with pytest.raises(ValueError, match="refused"), without_collections(ABSENT):
        raise ValueError("refused")
    assert gc.isenabled()


def test_who_has_no_collections_keeps_none() -> None:
    gc.disable()
    try:
        with without_collections(ABSENT):
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_first_start_has_hardly_a_collection() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_START], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= COLLECTIONS_MAX

"""Parsers of hostile bytes raise declared errors alone, and take little time and memory, for the corpus and mutations.

`tests/soak/network/test_fuzzer_soak.py` searches for more.
"""

from __future__ import annotations

import random
import time
import tracemalloc

import pytest

from tests.support.fuzzing.corpus import CORPUS, corpus
from tests.support.fuzzing.targets import DECOMPRESSED_BYTES_MAX, TARGETS, run
from tests.support.wire.mutated_frames import mutated

MUTATIONS = 300
SECONDS_MAX = 0.5
"""Of processor time, for one input of at most 64 KB."""
MEMORY_MAX = 8 * DECOMPRESSED_BYTES_MAX


@pytest.mark.parametrize("name", TARGETS)
def test_declared_errors_alone(name: str) -> None:
    rng = random.Random(name)
    inputs = corpus(name)
    for number in range(len(inputs) + MUTATIONS):
        data = inputs[number] if number < len(inputs) else mutated(rng.choice(inputs), inputs, rng)
        began = time.process_time()
        run(TARGETS[name], data)
        assert time.process_time() - began < SECONDS_MAX, data


@pytest.mark.parametrize("name", TARGETS)
def test_memory_is_bounded(name: str) -> None:
    rng = random.Random(name)
    inputs = corpus(name)
    tracemalloc.start()
    try:
        for _ in range(MUTATIONS // 3):
            data = mutated(rng.choice(inputs), inputs, rng)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            run(TARGETS[name], data)
            assert tracemalloc.get_traced_memory()[1] - before < MEMORY_MAX, data
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", TARGETS)
def test_valid_inputs_are_accepted(name: str) -> None:
    """Else mutations of them would reach no more than the first check."""
    accepted = 0
    for data in corpus(name):
        try:
            TARGETS[name].run(data)
        except TARGETS[name].errors:
            continue
        accepted += 1
    assert accepted


def test_each_file_belongs_to_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= set(TARGETS)


def test_an_undeclared_error_is_noticed() -> None:
    target = TARGETS["jaas"]._replace(errors=())
    with pytest.raises(Exception, match="Login module not specified"):
        run(target, b"")

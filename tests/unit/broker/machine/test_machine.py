from __future__ import annotations

import uuid
from random import Random
from typing import cast

from odradek.broker.machine.machine import ClosableIoPool, ClosableWorkerPool, Machine
from odradek.protocol.codec.primitives import uuid_to_text
from odradek.storage.disk.file_system import OsFileSystem


def machine(rng: Random) -> Machine:
    return Machine(io_pool=cast("ClosableIoPool", None), workers=cast("ClosableWorkerPool", None), rng=rng)


def test_the_same_seed_gives_the_same_ids() -> None:
    first, again, other = machine(Random(1)), machine(Random(1)), machine(Random(2))
    drawn = [first.new_id(), first.new_uuid_hex()]
    assert [again.new_id(), again.new_uuid_hex()] == drawn
    assert other.new_id() != drawn[0]


def test_ids_are_random_uuids_whose_text_does_not_begin_with_a_dash() -> None:
    one = machine(Random(1))
    ids = [one.new_id() for _ in range(1_000)]
    assert len(set(ids)) == 1_000
    assert {uuid.UUID(bytes=drawn).version for drawn in ids} == {4}
    assert not [drawn for drawn in ids if uuid_to_text(drawn).startswith("-")]


def test_a_name_is_32_hex_digits() -> None:
    name = machine(Random(1)).new_uuid_hex()
    assert (len(name), uuid.UUID(hex=name).hex, uuid.UUID(hex=name).version) == (32, name, 4)


def test_the_default_file_system_is_the_real_one() -> None:
    assert isinstance(machine(Random(1)).fs, OsFileSystem)

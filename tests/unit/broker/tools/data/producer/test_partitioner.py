from __future__ import annotations

import pytest

from odradek.broker.tools.data.producer.partitioner import (
    PARTITIONERS,
    HashPartitioner,
    crc32_partition,
    java_partition,
    murmur2,
)


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        # The vectors of Apache Kafka's UtilsTest.testMurmur2.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_javas(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF
    assert java_partition(key, 1000) == (signed & 0x7FFFFFFF) % 1000


def test_crc32_is_librdkafkas() -> None:
    assert crc32_partition(b"hello", 100) == 0x3610A686 % 100


def test_a_key_always_has_its_partition_and_records_without_a_key_stay_for_a_batch() -> None:
    turns = iter((1, 0))
    partitioner = HashPartitioner(java_partition, lambda count: next(turns))
    keyed = {partitioner.partition("t", b"abc", 5, (0, 1, 2, 3, 4)) for _ in range(3)}
    assert keyed == {479470107 % 5}
    assert [partitioner.partition("t", None, 5, (2, 4)) for _ in range(3)] == [4, 4, 4]
    partitioner.batch_is_full("t", 3)  # of another partition
    assert partitioner.partition("t", None, 5, (2, 4)) == 4
    partitioner.batch_is_full("t", 4)
    assert partitioner.partition("t", None, 5, (2, 4)) == 2


def test_without_a_key_a_partition_that_has_lost_its_leader_is_left() -> None:
    partitioner = HashPartitioner(java_partition, lambda count: 0)
    assert partitioner.partition("t", None, 3, (1, 2)) == 1
    assert partitioner.partition("t", None, 3, (2,)) == 2
    assert partitioner.partition("t", None, 3, ()) == 2, "without any leader it stays"


def test_round_robin() -> None:
    partitioner = PARTITIONERS["round-robin"](lambda count: 0)
    assert [partitioner.partition("t", b"k", 3, (0, 2)) for _ in range(4)] == [0, 2, 0, 2]
    partitioner.batch_is_full("t", 0)
    assert partitioner.partition("other", b"k", 3, ()) == 0

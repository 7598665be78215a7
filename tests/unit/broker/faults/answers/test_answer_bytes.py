from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

import pytest

from odradek.broker.faults.answers.answer_bytes import (
    SLICE_BYTES,
    AlteredAnswer,
    CorruptedRecords,
    read_region,
    with_wrong_crc,
)
from odradek.broker.network.responses.sliced_records import SlicedRecords
from odradek.protocol.records.batch import view_batch
from odradek.protocol.records.errors import CorruptRecordError
from odradek.storage.disk.ports import InlineIoPool
from tests.support.in_process.connections.network import LaterIoPool, MemoryRegion
from tests.support.wire.requests import batch, message_set


class Later:
    """What is to be called later, with its delay."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, Callable[[], object]]] = []

    def __call__(self, ms: int, work: Callable[[], object]) -> None:
        self.waiting.append((ms, work))


@pytest.fixture
def region() -> Iterator[MemoryRegion]:
    made = MemoryRegion(bytes(range(256)) * 1_000, position=5)
    yield made
    made.close()


class Halves(SlicedRecords):
    """Records that come in slices of other sizes."""

    def __init__(self, content: bytes, *slices: int) -> None:
        self.size_in_bytes = self.remaining = len(content)
        self._content = content
        self._slices = list(slices)

    def next_slice(self, done: Callable[[bytes | OSError], None]) -> None:
        size = self._slices.pop(0)
        data, self._content = self._content[:size], self._content[size:]
        self.remaining -= len(data)
        done(data)


def sent(answer: SlicedRecords) -> bytes:
    out: list[bytes | OSError] = []
    while answer.remaining:
        count = len(out)
        answer.next_slice(out.append)
        if len(out) == count:
            break
    return b"".join(data for data in out if isinstance(data, bytes))


@pytest.mark.parametrize("end", [0, 3, 4, 70_000, 256_004, None])
def test_the_first_bytes_of_all_parts(region: MemoryRegion, end: int | None) -> None:
    whole = b"head" + bytes(range(256)) * 1_000 + b"tail"
    answer = AlteredAnswer([b"head", region, b"tail"], InlineIoPool(), Later(), end=end)
    answer.retain()
    assert answer.size_in_bytes == len(whole if end is None else whole[:end])
    assert sent(answer) == (whole if end is None else whole[:end])
    answer.release()
    assert region.pins == 0


def test_all_regions_are_retained_or_none(region: MemoryRegion) -> None:
    class Unopenable(Halves):
        def retain(self) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

    answer = AlteredAnswer([b"head", region, Unopenable(b"v")], InlineIoPool(), Later())
    with pytest.raises(OSError, match="Too many open files"):
        answer.retain()
    assert region.pins == 0


def test_when_the_bytes_are_sent_the_end_is_reported(region: MemoryRegion) -> None:
    ended: list[str] = []
    answer = AlteredAnswer([region], InlineIoPool(), Later(), end=10, finished=lambda: ended.append("ended"))
    slices: list[bytes | OSError] = []
    answer.next_slice(slices.append)
    assert (slices, ended) == ([bytes(range(10))], [])
    assert answer.remaining, "the sender asks again when it has sent these"
    answer.next_slice(slices.append)
    assert (len(slices), ended) == (1, ["ended"])


def test_a_rate_is_kept_by_pieces_and_waits() -> None:
    later = Later()
    answer = AlteredAnswer([bytes(25)], InlineIoPool(), later, bytes_per_second=200)
    sizes = []
    while answer.remaining:
        out: list[bytes | OSError] = []
        answer.next_slice(out.append)
        assert not out, "it waits first"
        ms, work = later.waiting.pop()
        work()
        assert isinstance(out[0], bytes)
        sizes.append((len(out[0]), ms))
    assert sizes == [(10, 50), (10, 50), (5, 25)]


def test_records_that_come_in_slices_are_cut_to_the_rate() -> None:
    later = Later()
    answer = AlteredAnswer([Halves(b"abcdefgh", 5, 3)], InlineIoPool(), later, end=7, bytes_per_second=60)
    out: list[bytes | OSError] = []
    while answer.remaining:
        answer.next_slice(out.append)
        later.waiting.pop()[1]()
    assert out == [b"abc", b"de", b"fgh"[:2]]


def test_a_file_is_read_in_the_pool_a_slice_at_a_time(region: MemoryRegion) -> None:
    pool = LaterIoPool()
    answer = AlteredAnswer([region], pool, Later())
    answer.retain()
    out: list[bytes | OSError] = []
    answer.next_slice(out.append)
    assert not out
    assert region.pins == 2, "while the pool reads it, it is retained once more"
    pool.run()
    assert region.pins == 1
    assert isinstance(out[0], bytes)
    assert len(out[0]) == SLICE_BYTES


def test_a_truncated_file_is_an_error(region: MemoryRegion) -> None:
    region.truncate(100)
    out: list[bytes | OSError] = []
    AlteredAnswer([b"x", region], InlineIoPool(), Later()).next_slice(out.append)
    read_region(region, 0, 200, InlineIoPool(), out.append)
    assert out[0] == b"x"
    assert isinstance(out[1], OSError)
    out.clear()
    CorruptedRecords(region, InlineIoPool()).next_slice(out.append)
    assert isinstance(out[0], OSError)


@pytest.mark.parametrize("records", [batch(b"one", b"two"), message_set(0, b"one"), message_set(1, b"one")])
def test_a_wrong_checksum_is_the_only_change(records: bytes) -> None:
    changed = with_wrong_crc(records)
    assert sum(a != b for a, b in zip(changed, records, strict=True)) == 1
    view_batch(memoryview(records)).ensure_valid()
    with pytest.raises(CorruptRecordError):
        view_batch(memoryview(changed)).ensure_valid()


def test_too_few_bytes_for_a_checksum_stay_as_they_are() -> None:
    assert with_wrong_crc(b"") == b""
    assert with_wrong_crc(bytes(17)) == bytes(17)


def test_only_the_first_batch_of_records_is_corrupted() -> None:
    records = batch(b"one") + batch(bytes(100_000)) + batch(b"three")
    region = MemoryRegion(records)
    corrupted = CorruptedRecords(region, InlineIoPool())
    corrupted.retain()
    assert sent(corrupted) == with_wrong_crc(records)
    corrupted.release()
    assert region.pins == 0
    region.close()
    assert sent(CorruptedRecords(Halves(records, 100, len(records)), InlineIoPool())) == with_wrong_crc(records)

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.fetch.lazy_down_conversion import LazyDownConversionRecords
from odradek.broker.network.responses import response_sender
from odradek.broker.network.responses.response_sender import (
    COPY_BATCH_BYTES,
    COPY_REGION_BYTES,
    TURN_BYTES,
    TURN_REGIONS,
    WINDOW_BYTES,
    FileRegion,
    retaining,
)
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.protocol.codec.codec import Part
from tests.support.in_process.connections.network import LaterIoPool, MemoryRegion, Sent


@pytest.fixture
def regions() -> Iterator[list[MemoryRegion]]:
    made: list[MemoryRegion] = []
    yield made
    for region in made:
        region.close()


def pattern(size: int, seed: int = 0) -> bytes:
    return bytes((seed + i * 7) % 251 for i in range(997)) * (size // 997 + 1)


def make(regions: list[MemoryRegion], size: int, *, position: int = 0, seed: int = 0) -> tuple[MemoryRegion, bytes]:
    content = pattern(size, seed)[:size]
    region = MemoryRegion(content, position=position)
    regions.append(region)
    return region, content


def test_bytes_go_through_the_transport_in_one_write() -> None:
    sent = Sent()
    assert not sent.sender.push([b"one", memoryview(b"two")])
    assert not sent.sender.push([b"three"])
    sent.sender.flush()
    assert sent.wire.data == b"onetwothree"
    assert sent.wire.writers == ["transport"]
    assert not sent.sender.is_blocked


def test_large_regions_go_by_sendfile_behind_their_headers(regions: list[MemoryRegion]) -> None:
    first, second = make(regions, 100_000, position=37), make(regions, 50_000, position=1)
    sent = Sent()
    assert sent.sender.push([b"header", first[0], b"next", second[0], b"trailer"])
    assert first[0].pins == 1
    sent.sender.flush()
    assert sent.wire.data == b"header" + first[1] + b"next" + second[1] + b"trailer"
    assert sent.wire.writers == ["send", "sendfile", "send", "sendfile", "transport"]
    assert sent.direct.sent_with_more == [False, True], "the client begins with the header while the records come"
    assert first[0].pins == 0


def test_records_are_copied_where_there_is_no_second_descriptor(regions: list[MemoryRegion]) -> None:
    region, content = make(regions, 200_000, position=37)
    sent = Sent(direct_error=OSError(errno.EMFILE, "Too many open files"))
    sent.sender.push([b"header", region, b"trailer"])
    sent.sender.flush()
    assert sent.wire.data == b"header" + content + b"trailer"
    assert set(sent.wire.writers) == {"transport"}
    assert region.pins == 0
    assert sent.broken == []


def test_small_regions_are_copied_with_the_bytes_around_them(regions: list[MemoryRegion]) -> None:
    parts: list[object] = []
    expected = b""
    for number in range(3):
        region, content = make(regions, 100, position=number, seed=number)
        parts += [b"part%d" % number, region]
        expected += b"part%d" % number + content
    sent = Sent()
    sent.sender.push(parts)  # type: ignore[arg-type]
    sent.sender.flush()
    assert sent.wire.data == expected
    assert sent.wire.writers == ["transport"]
    assert [region.pins for region in regions] == [0, 0, 0]


@pytest.mark.parametrize(
    ("size", "writers"), [(COPY_REGION_BYTES, ["transport"]), (COPY_REGION_BYTES + 1, ["send", "sendfile"])]
)
def test_threshold_between_copying_and_sendfile(regions: list[MemoryRegion], size: int, writers: list[str]) -> None:
    region, content = make(regions, size)
    sent = Sent()
    sent.sender.push([b"h", region])
    sent.sender.flush()
    assert sent.wire.data == b"h" + content
    assert sent.wire.writers == writers


def test_empty_region_is_nothing(regions: list[MemoryRegion]) -> None:
    region, _ = make(regions, 0)
    sent = Sent()
    sent.sender.push([b"a", region, b"b"])
    sent.sender.flush()
    assert sent.wire.data == b"ab"
    assert not region.was_retained


@pytest.mark.parametrize("before", [[], [bytes(COPY_BATCH_BYTES)], [b"", bytes(COPY_BATCH_BYTES), b""]])
def test_empty_parts_are_nothing(before: list[bytes]) -> None:
    sent = Sent()
    sent.sender.push([*before, b"", b""])
    sent.sender.flush()
    assert sent.wire.data == b"".join(before)
    sent.sender.push([b"next"])
    sent.sender.flush()
    assert sent.wire.data.endswith(b"next")


def test_the_next_request_comes_when_only_empty_parts_are_left() -> None:
    """Else the connection would wait for ever."""
    sent = Sent()
    sent.sender.push([bytes(TURN_BYTES), b"", b""])
    sent.sender.flush()
    (go_on,) = sent.soon
    go_on()
    assert not sent.sender.is_blocked
    assert sent.ready == 1


def test_region_of_a_transport_that_cannot_be_bypassed_is_copied(regions: list[MemoryRegion]) -> None:
    region, content = make(regions, 200_000, position=5)
    sent = Sent(bypass=False)
    sent.transport.take(1000)
    sent.sender.push([b"header", region, b"trailer"])
    sent.sender.flush()
    assert sent.sender.is_blocked
    assert len(sent.transport.pending) < COPY_BATCH_BYTES  # the rest waits as a region
    sent.transport.take(None)
    assert sent.wire.data == b"header" + content + b"trailer"
    assert set(sent.wire.writers) == {"transport"}
    assert sent.ready == 1
    assert region.pins == 0


def test_full_socket_is_waited_for_and_nothing_overtakes(regions: list[MemoryRegion]) -> None:
    region, content = make(regions, 100_000)
    sent = Sent()
    sent.direct.room = 40_000
    sent.sender.push([b"header", region])
    sent.sender.flush()
    assert sent.sender.is_blocked
    assert sent.direct.writable is not None
    sent.sender.push([b"second"])
    sent.sender.flush()  # must not write past the region
    assert sent.wire.data == b"header" + content[: 40_000 - 6]
    sent.direct.make_room(50_000)
    assert sent.sender.is_blocked
    assert sent.ready == 0
    sent.direct.make_room(10**6)
    assert sent.wire.data == b"header" + content + b"second"
    assert not sent.sender.is_blocked
    assert sent.ready == 1


def test_header_that_is_only_partly_taken_is_continued(regions: list[MemoryRegion]) -> None:
    region, content = make(regions, 50_000)
    sent = Sent()
    sent.direct.room = 3
    sent.sender.push([b"header", region])
    sent.sender.flush()
    assert sent.wire.data == b"hea"
    sent.direct.make_room(0)
    assert sent.sender.is_blocked
    sent.direct.make_room(10**6)
    assert sent.wire.data == b"header" + content
    assert sent.sender.queued_bytes == 0


def test_transport_that_is_full_stops_everything_until_it_is_empty(regions: list[MemoryRegion]) -> None:
    region, content = make(regions, 100_000)
    sent = Sent()
    sent.transport.take(4)
    sent.sender.push([b"first response"])
    sent.sender.flush()
    sent.sender.push([b"second", region])
    sent.sender.flush()
    assert sent.sender.is_blocked
    assert sent.wire.data == b"firs"
    assert sent.direct.sent_with_more == []  # the direct socket is not touched while the transport holds bytes
    sent.transport.take(3)
    assert sent.sender.is_blocked
    sent.transport.take(None)
    assert sent.wire.data == b"first responsesecond" + content
    assert sent.ready == 1


def test_slow_reader_costs_one_batch_of_memory_however_much_waits(regions: list[MemoryRegion]) -> None:
    sent = Sent()
    sent.transport.take(0)
    parts: list[object] = []
    for number in range(200):
        region, _ = make(regions, COPY_REGION_BYTES, seed=number)
        parts += [b"h" * 50, region]
    sent.sender.push(parts)  # type: ignore[arg-type]
    sent.sender.flush()
    assert len(sent.transport.pending) <= COPY_BATCH_BYTES + COPY_REGION_BYTES
    assert sent.sender.queued_bytes <= 200 * 50


def test_truncated_file_breaks_the_connection(regions: list[MemoryRegion]) -> None:
    region, _ = make(regions, 100_000)
    region.truncate(60_000)
    sent = Sent()
    sent.sender.push([b"h", region])
    sent.sender.flush()
    assert [reason for reason, _ in sent.broken] == [CloseReason.RECORDS_UNREADABLE]
    assert sent.sender.is_blocked
    sent.sender.discard()
    assert region.pins == 0


def test_truncated_small_region_breaks_the_connection(regions: list[MemoryRegion]) -> None:
    region, _ = make(regions, 1000)
    region.truncate(0)
    sent = Sent()
    sent.sender.push([b"h", region])
    sent.sender.flush()
    assert [reason for reason, _ in sent.broken] == [CloseReason.RECORDS_UNREADABLE]


def test_socket_error_breaks_the_connection(regions: list[MemoryRegion], monkeypatch: pytest.MonkeyPatch) -> None:
    region, _ = make(regions, 100_000)
    sent = Sent()

    def broken_pipe(fd: int, position: int, count: int) -> int:
        raise BrokenPipeError("Broken pipe")

    monkeypatch.setattr(sent.direct, "sendfile", broken_pipe)
    sent.sender.push([region])
    sent.sender.flush()
    assert sent.broken == [(CloseReason.CONNECTION_FAILED, "Broken pipe")]


def test_discard_releases_every_region_and_closes_the_direct_socket(regions: list[MemoryRegion]) -> None:
    first, _ = make(regions, 100_000)
    second, _ = make(regions, 50_000)
    sent = Sent()
    sent.direct.room = 10
    sent.sender.push([b"h", first, second])
    sent.sender.flush()
    assert [first.pins, second.pins] == [1, 1]
    sent.sender.discard()
    assert [first.pins, second.pins] == [0, 0]
    assert sent.direct.is_closed


def test_large_response_gives_others_their_turn(regions: list[MemoryRegion]) -> None:
    region, content = make(regions, TURN_BYTES + WINDOW_BYTES)
    sent = Sent()
    sent.sender.push([region])
    sent.sender.flush()
    assert len(sent.wire.data) == TURN_BYTES
    assert sent.sender.is_blocked
    (resume,) = sent.soon
    resume()
    assert bytes(sent.wire.data) == content
    assert sent.ready == 1


@pytest.mark.parametrize(("count", "turns"), [(TURN_REGIONS, 1), (TURN_REGIONS + 1, 2), (3 * TURN_REGIONS, 3)])
def test_response_of_many_small_regions_gives_others_their_turn(
    regions: list[MemoryRegion], count: int, turns: int
) -> None:
    made = [make(regions, 10, position=number % 7, seed=number) for number in range(count)]
    sent = Sent()
    sent.sender.push([part for region, _ in made for part in (b"of a partition", region)])
    taken = 1
    sent.sender.flush()
    while sent.soon:
        sent.soon.pop()()
        taken += 1
    assert taken == turns
    assert bytes(sent.wire.data) == b"".join(b"of a partition" + content for _, content in made)
    assert {region.pins for region, _ in made} == {0}


def test_regions_are_retained_one_a_step(regions: list[MemoryRegion]) -> None:
    parts: list[Part] = [b"header"]
    for size in (10, 0, 20):
        parts += [b"of a partition", make(regions, size)[0]]
    retained: list[FileRegion] = []
    steps = retaining(parts, retained)
    for count in (1, 2):
        next(steps)
        assert [region.pins for region in regions] == [1, 0, count - 1]
    assert not list(steps)
    assert retained == [regions[0], regions[2]]


class Slices(LazyDownConversionRecords):
    """Records whose slices the test makes."""

    __slots__ = ("asked", "pins")

    def __init__(self, size: int) -> None:
        self.size_in_bytes = self.remaining = size
        self.asked: list[Callable[[bytes | OSError], None]] = []
        self.pins = 0

    def next_slice(self, done: Callable[[bytes | OSError], None]) -> None:
        self.asked.append(done)

    def make(self, data: bytes) -> None:
        self.remaining -= len(data)
        self.asked.pop()(data)

    def retain(self) -> None:
        self.pins += 1

    def release(self) -> None:
        self.pins -= 1


class SlicesAtOnce(Slices):
    __slots__ = ()

    def next_slice(self, done: Callable[[bytes | OSError], None]) -> None:
        super().next_slice(done)
        self.make(b"12345")


def test_converted_records_are_asked_for_slice_by_slice(regions: list[MemoryRegion]) -> None:
    region, content = make(regions, 100_000)
    sent, records = Sent(), Slices(7)
    assert sent.sender.push([b"header", records, b"trailer", region])
    sent.sender.flush()
    assert (bytes(sent.wire.data), sent.sender.is_blocked, len(records.asked)) == (b"header", True, 1)
    records.make(b"abcd")
    assert (bytes(sent.wire.data), len(records.asked), records.pins) == (b"headerabcd", 1, 1)
    records.make(b"efg")
    assert bytes(sent.wire.data) == b"headerabcdefgtrailer" + content
    assert (records.asked, records.pins, sent.sender.is_blocked, sent.sender.queued_bytes) == ([], 0, False, 0)


def test_no_slice_is_made_while_the_peer_does_not_take_the_one_before() -> None:
    sent, records = Sent(), Slices(8)
    sent.transport.take(2)
    sent.sender.push([records])
    sent.sender.flush()
    records.make(b"abcd")
    assert records.asked == []
    sent.transport.take(None)
    assert len(records.asked) == 1
    records.make(b"efgh")
    assert bytes(sent.wire.data) == b"abcdefgh"


def test_others_have_their_turn_after_a_slice_that_was_made_at_once() -> None:
    sent, records = Sent(), SlicesAtOnce(15)
    sent.sender.push([records])
    sent.sender.flush()
    turns = 0
    while sent.sender.is_blocked:
        turns += 1
        sent.soon.pop()()
    assert (turns, bytes(sent.wire.data)) == (3, b"12345" * 3)


def test_slice_that_cannot_be_read_breaks_the_connection() -> None:
    sent, records = Sent(), Slices(8)
    sent.sender.push([records])
    sent.sender.flush()
    records.asked.pop()(OSError(5, "Input/output error"))
    assert [reason for reason, _ in sent.broken] == [CloseReason.RECORDS_UNREADABLE]


def test_slice_after_the_end_of_the_connection_is_dropped() -> None:
    sent, records = Sent(), Slices(8)
    sent.sender.push([records])
    sent.sender.flush()
    sent.sender.discard()
    records.make(b"abcd")
    assert (bytes(sent.wire.data), records.pins) == (b"", 0)


class ColdPages:
    """A fake of an empty page cache."""

    def __init__(self) -> None:
        self.is_cold = True

    def is_in_memory(self, fd: int, position: int, count: int) -> bool:
        return not self.is_cold

    def read_hot(self, region: MemoryRegion) -> bytes | None:
        return None if self.is_cold else b"?"


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> ColdPages:
    pages = ColdPages()
    monkeypatch.setattr(response_sender, "is_in_memory", pages.is_in_memory)
    monkeypatch.setattr(response_sender, "read_hot", pages.read_hot)
    return pages


@pytest.mark.parametrize("size", [500, 100_000])
def test_cold_pages_are_read_ahead_in_the_pool(regions: list[MemoryRegion], cold: ColdPages, size: int) -> None:
    region, content = make(regions, size)
    pool = LaterIoPool()
    sent = Sent(io_pool=pool)
    sent.sender.push([b"h", region])
    sent.sender.flush()
    assert sent.sender.is_blocked
    assert region.pins == 2  # for the response and for the thread
    pool.run()
    assert sent.wire.data == b"h" + content
    assert sent.ready == 1
    assert region.pins == 0


def test_connection_lost_while_the_disk_is_read(regions: list[MemoryRegion], cold: ColdPages) -> None:
    region, _ = make(regions, 100_000)
    pool = LaterIoPool()
    sent = Sent(io_pool=pool)
    sent.sender.push([region])
    sent.sender.flush()
    sent.sender.discard()
    assert region.pins == 1  # the thread still reads from the descriptor
    pool.run()
    assert region.pins == 0
    assert sent.wire.data == b""


def test_disk_error_breaks_the_connection(
    regions: list[MemoryRegion], cold: ColdPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    region, _ = make(regions, 100_000)
    pool = LaterIoPool()
    sent = Sent(io_pool=pool)
    sent.sender.push([region])
    sent.sender.flush()

    def failing(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(response_sender.os, "preadv", failing)
    pool.run()
    assert [reason for reason, _ in sent.broken] == [CloseReason.RECORDS_UNREADABLE]


PARTS = st.lists(
    st.one_of(st.binary(min_size=1, max_size=200), st.integers(0, 3 * COPY_REGION_BYTES)), min_size=1, max_size=12
)


@settings(max_examples=60)
@given(PARTS, st.booleans(), st.lists(st.integers(0, 40_000), max_size=10))
def test_whatever_the_socket_takes_the_peer_receives_everything_in_order(
    parts: list[bytes | int], bypass: bool, rooms: list[int]
) -> None:
    made: list[MemoryRegion] = []
    sent = Sent(bypass=bypass)
    expected = b""
    sent.transport.take(rooms[0] if rooms else None)
    sent.direct.room = rooms[0] if rooms else 10**9
    for part in parts:
        if isinstance(part, bytes):
            expected += part
            sent.sender.push([part])
        else:
            region, content = make(made, part, position=part % 5, seed=part)
            expected += content
            sent.sender.push([region])
        sent.sender.flush()
    for room in [*rooms, 10**9, 10**9]:
        sent.transport.take(room)
        if sent.direct.writable is not None:
            sent.direct.make_room(room)
        while sent.soon:
            sent.soon.pop()()
    assert bytes(sent.wire.data) == expected
    assert not sent.sender.is_blocked
    assert all(region.pins == 0 for region in made)
    for region in made:
        region.close()

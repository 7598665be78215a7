from __future__ import annotations

from spark_jobs.kafka_log.segments import Segment, listing_of


def name(offset: int, suffix: str = ".log") -> str:
    return f"{offset:020d}{suffix}"


def test_what_belongs_to_the_log() -> None:
    names = [
        name(10),
        name(0),
        name(0, ".index"),
        name(5, ".log.swap"),
        name(10, ".log.swap"),
        name(20, ".log.cleaned"),
    ]
    names += [name(3, ".log.deleted"), name(7, ".snapshot"), name(0, ".timeindex.swap"), "partition.metadata", "x.log"]
    listing = listing_of("/d", names)
    assert [(each.base_offset, each.path) for each in listing.live] == [
        (0, f"/d/{name(0)}"),
        (5, f"/d/{name(5, '.log.swap')}"),
        (10, f"/d/{name(10)}"),
    ]
    assert [each.base_offset for each in listing.deleted] == [3]
    assert listing.snapshots == (7,)
    assert listing.first_offset == 0
    assert listing_of("/d", []).first_offset is None


def test_who_has_an_offset() -> None:
    listing = listing_of("/d", [name(3, ".log.deleted"), name(6, ".log.deleted"), name(9), name(12)])
    assert [each.base_offset if (each := listing.covering(offset)) else None for offset in (0, 3, 5, 6, 9, 11, 99)] == [
        None,
        3,
        3,
        6,
        9,
        9,
        12,
    ]
    assert [listing.next_base(each) for each in (*listing.deleted, *listing.live)] == [6, 9, 12, None]


def test_behind_a_live_segment_deleted_ones_do_not_count() -> None:
    """A compaction has made one segment of 0, 3 and 6."""
    listing = listing_of("/d", [name(0), name(3, ".log.deleted"), name(6, ".log.deleted"), name(9)])
    assert listing.next_base(listing.live[0]) == 9
    assert (found := listing.covering(7)) is not None
    assert found.base_offset == 0


def test_indexes_have_the_marker_of_their_segment() -> None:
    assert Segment(5, f"/d/{name(5)}").beside(".index") == f"/d/{name(5, '.index')}"
    swapped = Segment(5, f"/d/{name(5, '.log.swap')}")
    assert swapped.beside(".txnindex") == f"/d/{name(5, '.txnindex.swap')}"
    assert swapped.file_name == name(5)
    assert Segment(5, f"/d/{name(5, '.log.deleted')}").beside(".timeindex") == f"/d/{name(5, '.timeindex.deleted')}"

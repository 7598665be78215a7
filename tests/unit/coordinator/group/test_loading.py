from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator import runtime
from odradek.coordinator.group.loading import Replay, loaded_groups
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_offsets import OffsetAndMetadata
from odradek.coordinator.group.state.group_states import GroupState
from odradek.coordinator.group.state.member import MemberMetadata
from odradek.coordinator.group.state.records import (
    group_metadata_key,
    group_metadata_value,
    offset_commit_key,
    offset_commit_value,
)
from odradek.coordinator.ports import TransactionalProducer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock
from tests.support.in_process.coordinator_log import InMemoryCoordinatorLog

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
P1 = TransactionalProducer(1, 0)
P2 = TransactionalProducer(2, 0)


class Log:
    """A log to fill and load."""

    def __init__(self) -> None:
        self.log = InMemoryCoordinatorLog()

    def append(
        self, *records: tuple[bytes | None, bytes | None], producer: TransactionalProducer | None = None
    ) -> None:
        outcome: list[ErrorCode] = []
        simple = [SimpleRecord(0, key, value) for key, value in records]
        self.log.append(0, simple, lambda error, _: outcome.append(error), producer=producer, base_sequence=0)
        assert outcome == [ErrorCode.NONE]

    def offset(
        self,
        offset: int | None,
        key: TopicPartition = T0,
        group: str = "g",
        producer: TransactionalProducer | None = None,
    ) -> None:
        self.append((offset_commit_key(group, key), None if offset is None else value(offset)), producer=producer)

    def group(self, group: str, generation: int, *member_ids: str) -> None:
        self.append((group_metadata_key(group), group_value(generation, *member_ids)))

    def load(self) -> dict[str, GroupMetadata]:
        replay = Replay()
        for _ in replay.run(self.log.read_all(0)):
            pass
        return {group.group_id: group for group in loaded_groups(replay, ManualClock()) if group is not None}


def value(offset: int) -> bytes:
    return offset_commit_value(OffsetAndMetadata(offset=offset, commit_timestamp_ms=5))


def group_value(generation: int, *member_ids: str) -> bytes:
    members = [
        MemberMetadata(
            member_id=member_id,
            group_instance_id=None,
            client_id="c",
            client_host="/h",
            rebalance_timeout_ms=1,
            session_timeout_ms=1,
            protocol_type="consumer",
            protocols=(("range", b"\0\0\0\0\0\1\0\1t\0\0\0\0"),),
        )
        for member_id in member_ids
    ]
    return group_metadata_value(
        protocol_type="consumer",
        generation_id=generation,
        protocol_name="range" if members else None,
        leader_id=member_ids[-1] if members else None,
        since_ms=77,
        members=members,
        assignment={member_id: member_id.encode() for member_id in member_ids},
    )


def committed(group: GroupMetadata) -> dict[TopicPartition, int]:
    return {key: found.offset for key in group.offsets if (found := group.offsets.get(key))}


def test_an_empty_log() -> None:
    assert Log().load() == {}


def test_the_last_value_of_a_key_counts() -> None:
    log = Log()
    log.offset(1)
    log.offset(2, T1)
    log.offset(3)
    assert committed(log.load()["g"]) == {T0: 3, T1: 2}


def test_tombstones_remove() -> None:
    log = Log()
    log.offset(1)
    log.offset(2, T1)
    log.offset(None)
    log.group("h", 1)
    log.append((group_metadata_key("h"), None))
    groups = log.load()
    assert committed(groups["g"]) == {T1: 2}
    assert list(groups) == ["g"]


def test_a_group_with_members_is_stable_one_without_is_empty() -> None:
    log = Log()
    log.group("stable", 3, "a", "b")
    log.group("empty", 4)
    log.offset(1, group="simple")
    groups = log.load()
    stable, empty, simple = groups["stable"], groups["empty"], groups["simple"]
    assert (stable.state, stable.generation_id, stable.leader_id) == (GroupState.STABLE, 3, "b")
    assert (stable.protocol_type, stable.protocol_name, stable.lifecycle.since_ms) == ("consumer", "range", 77)
    assert [one.assignment for one in stable.members] == [b"a", b"b"]
    assert stable.subscribed_topics == {"t"}
    assert (empty.state, empty.generation_id, empty.protocol_type) == (GroupState.EMPTY, 4, "consumer")
    assert empty.subscribed_topics == frozenset()
    assert (simple.state, simple.generation_id, simple.protocol_type) == (GroupState.EMPTY, 0, None)


def test_offsets_find_their_group() -> None:
    log = Log()
    log.offset(1, group="a")
    log.group("a", 1)
    log.offset(2, group="b")
    groups = log.load()
    assert committed(groups["a"]) == {T0: 1}
    assert groups["a"].generation_id == 1
    assert committed(groups["b"]) == {T0: 2}


def test_transactional_offsets_count_from_their_marker_on() -> None:
    log = Log()
    log.offset(1, producer=P1)
    log.offset(2, T1, producer=P2)
    group = log.load()["g"]
    assert committed(group) == {}
    assert group.offsets.is_unstable(T0)
    log.log.append_marker(0, P1, commit=True)
    log.log.append_marker(0, P2, commit=False)
    group = log.load()["g"]
    assert committed(group) == {T0: 1}
    assert group.offsets.producers == []


def test_a_transactional_offset_does_not_replace_a_later_plain_one() -> None:
    log = Log()
    log.offset(1, producer=P1)
    log.offset(2)
    log.log.append_marker(0, P1, commit=True)
    assert committed(log.load()["g"]) == {T0: 2}


def test_a_marker_of_an_unknown_producer_changes_nothing() -> None:
    log = Log()
    log.offset(1)
    log.log.append_marker(0, P1, commit=True)
    assert committed(log.load()["g"]) == {T0: 1}


def test_what_cannot_be_understood_is_left_out() -> None:
    log = Log()
    log.append((b"\0\3\0\1x", b"of the new coordinator"))
    log.append((None, b"no key"))
    log.append((b"\0", b"no version"))
    log.append((offset_commit_key("g", T1), b"\0\x63nonsense"))
    log.append((group_metadata_key("h"), b"\0\3nonsense"))
    log.append((offset_commit_key("g", T0)[:-1], value(9)))
    log.offset(1)
    groups = log.load()
    assert committed(groups["g"]) == {T0: 1}
    assert list(groups) == ["g"]


def test_a_batch_that_is_too_large_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "BATCH_BYTES_MAX", 10_000)
    log = Log()
    log.offset(1)
    for size, group in ((9_000, "large"), (11_000, "too large")):
        record = SimpleRecord(0, group_metadata_key(group), group_value(1, "m" * (size // 3)))
        log.log.append_batch(0, build_batch([record], compression_type=CompressionType.GZIP), 1)
    log.offset(2, T1)
    loaded = log.load()
    assert loaded.keys() == {"g", "large"}
    assert committed(loaded["g"]) == {T0: 1, T1: 2}


def test_old_offset_keys_are_the_same_keys() -> None:
    log = Log()
    log.append((b"\0\0" + offset_commit_key("g", T0)[2:], value(1)))
    log.offset(2)
    assert committed(log.load()["g"]) == {T0: 2}


def test_steps_are_as_small_as_records() -> None:
    log = Log()
    log.append(*((offset_commit_key("g", TopicPartition("t", index)), value(index)) for index in range(100)))
    assert sum(1 for _ in Replay().run(log.log.read_all(0))) == 100


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["set", "delete", "commit", "abort"]),
            st.sampled_from([T0, T1]),
            st.sampled_from([None, P1, P2]),
        ),
        max_size=25,
    )
)
def test_loading_against_a_dumb_model(
    steps: list[tuple[str, TopicPartition, TransactionalProducer | None]],
) -> None:
    log = Log()
    committed_at: dict[TopicPartition, int] = {}
    pending: dict[TransactionalProducer, dict[TopicPartition, int]] = {P1: {}, P2: {}}
    position = 0
    for step, key, producer in steps:
        if step in ("commit", "abort"):
            if producer is None:
                continue
            log.log.append_marker(0, producer, commit=step == "commit")
            if step == "commit":
                for one, offset in pending[producer].items():
                    committed_at[one] = max(offset, committed_at.get(one, -1))
            pending[producer] = {}
        else:
            target = committed_at if producer is None else pending[producer]
            log.offset(position if step == "set" else None, key, producer=producer)
            if step == "set":
                target[key] = position
            else:
                target.pop(key, None)
        position += 1
    groups = log.load()
    assert (committed(groups["g"]) if "g" in groups else {}) == committed_at
    unstable = {key for offsets in pending.values() for key in offsets}
    for key in unstable:
        assert groups["g"].offsets.is_unstable(key)

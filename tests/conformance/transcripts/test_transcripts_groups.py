"""What Apache Kafka answers to the requests of consumer groups: the life of a group, and invalid requests in it."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.coordinator.partitioning import partition_for
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.records.batch import AnyBatch, batches
from odradek.protocol.records.record import Record
from tests.support.broker import FAST_SETTINGS
from tests.support.transcripts.transcript import Transcript
from tests.support.waiting import eventually
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle


def join(group: str, member_id: str = "", **fields: object) -> Request:
    defaults = {
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"meta"}],
    }
    return build(ApiKey.JOIN_GROUP, group_id=group, member_id=member_id, **{**defaults, **fields})


def sync(
    group: str, generation: int, member_id: str, assignments: dict[str, bytes] | None = None, **fields: object
) -> Request:
    given = [{"member_id": member, "assignment": data} for member, data in (assignments or {}).items()]
    return build(
        ApiKey.SYNC_GROUP, group_id=group, generation_id=generation, member_id=member_id, assignments=given, **fields
    )


def heartbeat(group: str, generation: int, member_id: str, **fields: object) -> Request:
    return build(ApiKey.HEARTBEAT, group_id=group, generation_id=generation, member_id=member_id, **fields)


def leave(group: str, *members: dict[str, object]) -> Request:
    return build(ApiKey.LEAVE_GROUP, group_id=group, members=list(members))


def commit(group: str, topic: str, offset: int = 5, **fields: object) -> Request:
    in_partition = {name[2:]: fields.pop(name) for name in list(fields) if name.startswith("p_")}
    partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": "m", **in_partition}
    return build(ApiKey.OFFSET_COMMIT, group_id=group, topics=[{"name": topic, "partitions": [partition]}], **fields)


def fetch_offsets(group: str, topic: str | None, version: int, partitions: tuple[int, ...] = (0, 1)) -> Request:
    topics = None if topic is None else [{"name": topic, "partition_indexes": list(partitions)}]
    if version >= 8:
        return build(ApiKey.OFFSET_FETCH, groups=[{"group_id": group, "topics": topics}])
    return build(ApiKey.OFFSET_FETCH, group_id=group, topics=topics)


def create(t: Transcript, stem: str) -> str:
    topic = t.name(stem)
    new = {"name": topic, "num_partitions": 2, "replication_factor": 1}
    t.quietly(build(ApiKey.CREATE_TOPICS, topics=[new], timeout_ms=10_000), 2)
    return topic


def joined(t: Transcript, group: str, **fields: object) -> str:
    """A stable group of one member, whose id is returned; the answers are not noted."""
    member_id: str = t.until_accepted(join(group, **fields), 5).member_id
    if "group_instance_id" not in fields:
        t.quietly(join(group, member_id, **fields), 5)
    t.quietly(sync(group, 1, member_id, {member_id: b"given"}), 3)
    return member_id


def test_one_member_in_every_version(transcript: Transcript) -> None:
    """Join (in v4 and later after MEMBER_ID_REQUIRED), sync, heartbeat, describe, leave."""
    t = transcript
    for version in range(10):
        group = t.name(f"group-{version}")
        answer = t.call(f"join v{version}", join(group), version)
        assert answer is not None
        member_id: str = answer.member_id
        if version >= 4:
            t.call(f"join again v{version}", join(group, member_id), version)
        in_sync, in_beat, in_leave = min(version, 5), min(version, 4), min(version, 5)
        named = {"protocol_type": "consumer", "protocol_name": "range"} if in_sync == 5 else {}
        t.call(f"heartbeat before the sync v{version}", heartbeat(group, 1, member_id), in_beat)
        t.call(f"sync v{version}", sync(group, 1, member_id, {member_id: b"given"}, **named), in_sync)
        t.call(f"sync again v{version}", sync(group, 1, member_id, {}, **named), in_sync)
        t.call(f"heartbeat v{version}", heartbeat(group, 1, member_id), in_beat)
        t.call(f"describe v{version}", build(ApiKey.DESCRIBE_GROUPS, groups=[group]), min(version, 5))
        gone = leave(group, {"member_id": member_id})
        if in_leave < 3:
            gone = build(ApiKey.LEAVE_GROUP, group_id=group, member_id=member_id)
        t.call(f"leave v{version}", gone, in_leave)
        t.call(f"heartbeat after it v{version}", heartbeat(group, 1, member_id), in_beat)
        t.call(f"describe after it v{version}", build(ApiKey.DESCRIBE_GROUPS, groups=[group]), min(version, 5))


def test_two_members(transcript: Transcript) -> None:
    t = transcript
    group = t.name("pair")
    one, two = t.member("one"), t.member("two")
    first = [{"name": "range", "metadata": b"1"}, {"name": "roundrobin", "metadata": b"1rr"}]
    second = [{"name": "roundrobin", "metadata": b"2rr"}, {"name": "sticky", "metadata": b"2"}]
    one.send(join(group, protocols=first), 3)
    one_id: str = t.receive("the first joins", one, ApiKey.JOIN_GROUP, 3).member_id
    one.send(sync(group, 1, one_id, {one_id: b"all"}), 2)
    t.receive("it is given everything", one, ApiKey.SYNC_GROUP, 2)
    two.send(join(group, protocols=second), 3)
    while t.quietly(heartbeat(group, 1, one_id), 2).error_code == 0:
        pass  # until the join of the second has arrived
    t.call("the first hears of a rebalance", heartbeat(group, 1, one_id), 2)
    t.call("describe while preparing", build(ApiKey.DESCRIBE_GROUPS, groups=[group]), 4)
    t.call("sync while preparing", sync(group, 1, one_id), 2)
    one.send(join(group, one_id, protocols=first), 3)
    t.receive("the first joins again and leads", one, ApiKey.JOIN_GROUP, 3)
    two_id: str = t.receive("the second is in", two, ApiKey.JOIN_GROUP, 3).member_id
    t.call("describe while completing", build(ApiKey.DESCRIBE_GROUPS, groups=[group]), 4)
    t.call("heartbeat while completing", heartbeat(group, 2, two_id), 2)
    t.call("commit while completing", commit(group, "any", member_id=two_id, generation_id_or_member_epoch=2), 5)
    two.send(sync(group, 2, two_id), 2)
    one.send(sync(group, 2, one_id, {one_id: b"left", two_id: b"right"}), 2)
    t.receive("the first is given its part", one, ApiKey.SYNC_GROUP, 2)
    t.receive("the second is given its part", two, ApiKey.SYNC_GROUP, 2)
    t.call("describe when stable", build(ApiKey.DESCRIBE_GROUPS, groups=[group], include_authorized_operations=True), 4)
    two.send(join(group, two_id, protocols=second), 3)
    t.receive("a follower that joins again unchanged", two, ApiKey.JOIN_GROUP, 3)
    t.call("the generation is as it was", heartbeat(group, 2, one_id), 2)
    two.send(build(ApiKey.LEAVE_GROUP, group_id=group, member_id=two_id), 1)
    t.receive("the second leaves", two, ApiKey.LEAVE_GROUP, 1)
    t.call("the first hears of it", heartbeat(group, 2, one_id), 2)
    one.send(join(group, one_id, protocols=first), 3)
    t.receive("the first is alone, generation 3", one, ApiKey.JOIN_GROUP, 3)


def test_join_refused(transcript: Transcript) -> None:
    t = transcript
    for version in (0, 5, 9):
        t.call(f"empty group id v{version}", join(""), version)
        t.call(f"session timeout too short v{version}", join(t.name(f"a{version}"), session_timeout_ms=499), version)
        t.call(
            f"session timeout too long v{version}", join(t.name(f"b{version}"), session_timeout_ms=1_800_001), version
        )
        t.call(f"unknown member v{version}", join(t.name(f"c{version}"), "nobody"), version)
        t.call(f"no protocols v{version}", join(t.name(f"d{version}"), protocols=[]), version)
        t.call(f"no protocol type v{version}", join(t.name(f"e{version}"), protocol_type=""), version)
    group = t.name("taken")
    member_id = joined(t, group)
    t.call("another protocol type", join(group, protocol_type="connect"), 3)
    t.call("no protocol in common", join(group, protocols=[{"name": "sticky", "metadata": b""}]), 3)
    t.call("unknown member of a known group", join(group, "nobody"), 5)
    t.call("the member with another protocol type", join(group, member_id, protocol_type="connect"), 5)
    t.call("instance id with a blank", join(t.name("f"), group_instance_id="a b"), 5)
    t.call("empty instance id", join(t.name("g"), group_instance_id=""), 5)
    t.call("instance id too long", join(t.name("h"), group_instance_id="x" * 250), 5)


def test_wrong_member_or_generation(transcript: Transcript) -> None:
    t = transcript
    group, topic = t.name("strict"), create(t, "topic")
    member_id = joined(t, group)
    missing = t.name("no-group")
    for label, (name, generation, member) in {
        "right": (group, 1, member_id),
        "old generation": (group, 0, member_id),
        "generation -1": (group, -1, member_id),
        "newer generation": (group, 2, member_id),
        "unknown member": (group, 1, "nobody"),
        "empty member": (group, 1, ""),
        "unknown group": (missing, 1, member_id),
        "empty group": ("", 1, member_id),
    }.items():
        for version in (0, 4):
            t.call(f"heartbeat, {label} v{version}", heartbeat(name, generation, member), version)
        for version in (0, 5):
            t.call(f"sync, {label} v{version}", sync(name, generation, member), version)
        epoch = {"generation_id_or_member_epoch": generation, "member_id": member}
        for version in (2, 9):
            t.call(f"commit, {label} v{version}", commit(name, topic, **epoch), version)
        t.call(f"leave v2, {label}", build(ApiKey.LEAVE_GROUP, group_id=name, member_id="nobody"), 2)
        t.call(f"leave v3, {label}", leave(name, {"member_id": "nobody"}), 3)
    t.call("sync, wrong protocol type", sync(group, 1, member_id, protocol_type="connect", protocol_name="range"), 5)
    t.call("sync, wrong protocol name", sync(group, 1, member_id, protocol_type="consumer", protocol_name="sticky"), 5)
    t.call("commit as a simple consumer into a live group", commit(group, topic), 7)
    t.call("leave: nobody named", leave(group), 4)
    t.call("leave: three at once", leave(group, {"member_id": "a"}, {"member_id": member_id}, {"member_id": "b"}), 5)
    t.call("leave again", leave(group, {"member_id": member_id}), 5)


def test_static_members(transcript: Transcript) -> None:
    t = transcript
    group = t.name("static")
    first = joined(t, group, group_instance_id="one")
    t.call("describe", build(ApiKey.DESCRIBE_GROUPS, groups=[group]), 5)
    t.call("heartbeat", heartbeat(group, 1, first, group_instance_id="one"), 4)
    t.call("heartbeat of another instance", heartbeat(group, 1, first, group_instance_id="two"), 4)
    t.call("heartbeat of a wrong member", heartbeat(group, 1, "nobody", group_instance_id="one"), 4)
    again = t.call("a new process of it joins: no rebalance", join(group, group_instance_id="one"), 5)
    assert again is not None
    second: str = again.member_id
    t.call("the old process is fenced: heartbeat", heartbeat(group, 1, first, group_instance_id="one"), 4)
    t.call("the old process is fenced: sync", sync(group, 1, first, group_instance_id="one"), 5)
    t.call("the old process is fenced: join", join(group, first, group_instance_id="one"), 5)
    fenced = {"member_id": first, "generation_id_or_member_epoch": 1, "group_instance_id": "one"}
    t.call("the old process is fenced: commit", commit(group, "topic", **fenced), 7)
    t.call("the new process syncs", sync(group, 1, second, group_instance_id="one"), 5)
    third = t.call("once more, v9: told to skip the assignment", join(group, group_instance_id="one"), 9)
    assert third is not None
    t.call("it syncs", sync(group, third.generation_id, third.member_id, group_instance_id="one"), 5)
    t.call("leave: unknown instance", leave(group, {"member_id": "", "group_instance_id": "two"}), 4)
    t.call("leave: wrong member", leave(group, {"member_id": first, "group_instance_id": "one"}), 4)
    t.call("leave: by instance", leave(group, {"member_id": "", "group_instance_id": "one"}), 5)
    t.call("describe after it", build(ApiKey.DESCRIBE_GROUPS, groups=[group]), 5)


def test_offsets(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "committed")
    missing = t.name("missing")
    for version in range(1, 10):
        group = t.name(f"group-{version}")
        t.call(f"commit v{version}", commit(group, topic, 10 + version), version)
        t.call(f"fetch v{version}", fetch_offsets(group, topic, version), version)
        t.call(f"fetch of an unknown topic v{version}", fetch_offsets(group, missing, version), version)
        t.call(f"fetch of an unknown group v{version}", fetch_offsets(missing, topic, version), version)
        if version >= 2:
            t.call(f"fetch all v{version}", fetch_offsets(group, None, version), version)
            t.call(f"fetch all of an unknown group v{version}", fetch_offsets(missing, None, version), version)
            t.call(f"fetch, empty group id v{version}", fetch_offsets("", topic, version), version)
    group = t.name("simple")
    t.call("with a leader epoch", commit(group, topic, 7, p_committed_leader_epoch=3), 7)
    t.call("it comes back", fetch_offsets(group, topic, 7), 7)
    t.call("null metadata", commit(group, topic, 8, p_committed_metadata=None), 7)
    t.call("it comes back empty", fetch_offsets(group, topic, 7), 7)
    t.call("metadata at the limit", commit(group, topic, 9, p_committed_metadata="x" * 4096), 7)
    t.call("metadata too large", commit(group, topic, 9, p_committed_metadata="x" * 4097), 7)
    t.call("negative offset", commit(group, topic, -5), 7)
    t.call("unknown topic", commit(group, missing), 7)
    t.call("unknown partition", commit(group, topic, p_partition_index=9), 7)
    t.call("empty topic name", commit(group, ""), 7)
    t.call("empty group", commit("", topic), 7)
    t.call("no topics", build(ApiKey.OFFSET_COMMIT, group_id=group), 7)
    both = [
        {"group_id": group, "topics": None},
        {"group_id": missing, "topics": None},
        {"group_id": "", "topics": None},
    ]
    t.call("several groups", build(ApiKey.OFFSET_FETCH, groups=both), 8)
    t.call("the same group twice", build(ApiKey.OFFSET_FETCH, groups=both[:1] * 2), 9)
    t.call("stable offsets", build(ApiKey.OFFSET_FETCH, groups=both[:1], require_stable=True), 9)


def test_group_administration(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "topic")
    live, empty, missing = t.name("live"), t.name("empty"), t.name("missing")
    member_id = joined(t, live)
    t.quietly(commit(empty, topic), 7)
    t.quietly(commit("", topic), 7)  # the group without a name is one, too
    t.quietly(commit(live, topic, member_id=member_id, generation_id_or_member_epoch=1), 7)
    for version in range(6):
        asked = build(ApiKey.DESCRIBE_GROUPS, groups=[live, empty, missing, "", live])
        t.call(f"describe v{version}", asked, version)
    for version in range(6):
        answer = t.quietly(build(ApiKey.LIST_GROUPS), version)
        ours = sorted((t.plain(g, version) for g in answer.groups if g.group_id in (live, empty)), key=str)
        t.note(f"list v{version}", [answer.error_code, *ours])
    for states in (["Empty"], ["stable"], ["Dead", "Stable"], ["nonsense"]):
        answer = t.quietly(build(ApiKey.LIST_GROUPS, states_filter=states), 4)
        t.note(
            f"list states {states}", sorted(g.group_id == live for g in answer.groups if g.group_id in (live, empty))
        )
    for types in (["classic"], ["consumer"], ["CLASSIC"], ["nonsense"]):
        answer = t.quietly(build(ApiKey.LIST_GROUPS, types_filter=types), 5)
        t.note(f"list types {types}", sorted(g.group_id == live for g in answer.groups if g.group_id in (live, empty)))

    def delete_offsets(label: str, group: str, name: str, *partitions: int) -> None:
        topics = [{"name": name, "partitions": [{"partition_index": p} for p in partitions]}]
        t.call(label, build(ApiKey.OFFSET_DELETE, group_id=group, topics=topics), 0)

    delete_offsets("delete offsets", empty, topic, 0)
    t.call("they are gone", fetch_offsets(empty, topic, 7), 7)
    delete_offsets("delete offsets that are not there", empty, topic, 1)
    delete_offsets("delete offsets of an unknown partition", empty, topic, 77)
    delete_offsets("delete offsets of an unknown topic", empty, missing, 0)
    delete_offsets("delete offsets of an unknown group", missing, topic, 0)
    delete_offsets("delete offsets of an unreadable subscription", live, topic, 0)
    delete_offsets("delete offsets of no group", "", topic, 0)
    t.quietly(commit(empty, topic), 7)
    for version in range(3):
        asked = build(ApiKey.DELETE_GROUPS, groups_names=[live, empty, missing, "", missing])
        answer = t.quietly(asked, version)
        t.note(f"delete v{version}", sorted((t.plain(result, version) for result in answer.results), key=str))
    t.call("no groups to delete", build(ApiKey.DELETE_GROUPS), 2)
    t.call("no groups to describe", build(ApiKey.DESCRIBE_GROUPS), 5)


def test_a_deleted_topic_takes_empty_groups_with_it(transcript: Transcript) -> None:
    """Those without offsets, whether or not they ever had any of that topic."""
    t = transcript
    kept, deleted = create(t, "kept"), create(t, "deleted")
    t.with_internal_topics()
    left = t.name("left")
    member_id = joined(t, left)
    t.quietly(leave(left, {"member_id": member_id}), 3)
    groups = {"left": left, "active": t.name("active"), "offsets": t.name("offsets"), "both": t.name("both")}
    joined(t, groups["active"])
    t.quietly(commit(groups["offsets"], deleted), 5)
    for topic in (kept, deleted):
        t.quietly(commit(groups["both"], topic), 5)
    t.call("before", build(ApiKey.DESCRIBE_GROUPS, groups=list(groups.values())), 5)
    t.quietly(build(ApiKey.DELETE_TOPICS, topic_names=[deleted], timeout_ms=10_000), 3)
    described = eventually(
        lambda: t.quietly(build(ApiKey.DESCRIBE_GROUPS, groups=list(groups.values())), 5),
        accept=lambda answer: [group.group_state for group in answer.groups] == ["Dead", "Stable", "Dead", "Empty"],
    )
    t.note("after", t.plain(described, 5))
    again = joined(t, left)
    t.call("the first generation again", heartbeat(left, 1, again), 3)
    t.call(
        "the last offset",
        build(
            ApiKey.OFFSET_DELETE,
            group_id=groups["both"],
            topics=[{"name": kept, "partitions": [{"partition_index": 0}]}],
        ),
        0,
    )
    t.call("no group", build(ApiKey.DESCRIBE_GROUPS, groups=[groups["both"]]), 5)


def test_batches_of_the_internal_topic(transcript: Transcript) -> None:
    """The headers of what a commit, a group and its tombstones become."""
    t = transcript
    topic, group = create(t, "kept"), t.name("written")
    partition = partition_for(group, int(FAST_SETTINGS["offsets.topic.num.partitions"]))
    t.with_internal_topics()

    def position(timestamp: int) -> int:
        asked = [{"partition_index": partition, "timestamp": timestamp}]
        topics = [{"name": "__consumer_offsets", "partitions": asked}]
        answer: Any = t.quietly(build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=topics), 5)
        return int(answer.topics[0].partitions[0].offset)

    start = position(-1)
    t.until_accepted(build(ApiKey.DESCRIBE_GROUPS, groups=[group]), 5)
    t.quietly(commit(group, topic), 5)
    member_id = joined(t, group)
    t.quietly(leave(group, {"member_id": member_id}), 3)
    t.quietly(build(ApiKey.DELETE_GROUPS, groups_names=[group]), 1)
    asked = [{"partition": partition, "fetch_offset": start, "partition_max_bytes": 1 << 20}]
    topics = [{"topic": "__consumer_offsets", "partitions": asked}]

    def written() -> list[tuple[int, AnyBatch, list[Record]]]:
        """What is there of this group, with the offset among its records: sessions of other groups may end now."""
        fetched: Any = t.quietly(build(ApiKey.FETCH, max_wait_ms=100, min_bytes=1, topics=topics), 11)
        found, offset = [], 0
        for each in batches(memoryview(fetched.responses[0].partitions[0].records)):
            records = list(each.records())
            if any(group.encode() in (record.key or b"") for record in records):
                found.append((offset, each, records))
                offset += len(records)
        return found

    of_group = eventually(written, accept=lambda found: sum(len(records) for *_, records in found) >= 5)
    for number, (offset, found, records) in enumerate(of_group):
        t.note(
            f"batch {number}",
            {
                "offset": offset,
                "producer": [found.producer_id, found.producer_epoch, found.base_sequence],
                "attributes": found.attributes,
                "keys": [(record.key or b"")[:2].hex() for record in records],
                "tombstones": [record.value is None for record in records],
            },
        )

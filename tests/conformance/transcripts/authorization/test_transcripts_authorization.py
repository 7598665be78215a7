"""What Apache Kafka with an AclAuthorizer answers to producers and consumers with no, some and all rights.

The client may name what exists and what does not: without the right it must not learn which is which.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from odradek.controller.model.acls import AclOperation
from odradek.protocol.api import ApiKey
from tests.support.transcripts.rights import EVERYTHING, Right, cluster, group, topic, transactional_id
from tests.support.transcripts.secured import UNKNOWN_ID, SecuredTranscript
from tests.support.wire.requests import batch, build

pytestmark = pytest.mark.oracle

Op = AclOperation


def of_topics(seen: str, *more: str, operations: Sequence[AclOperation]) -> dict[str, Sequence[Right]]:
    """Variants: nothing, each operation on the named topics, everything."""
    variants: dict[str, Sequence[Right]] = {"nothing": ()}
    for operation in operations:
        variants[operation.name] = [topic(operation, name) for name in (seen, *more)]
    return {**variants, "everything": EVERYTHING}


# -- records


def test_produce(secured: SecuredTranscript) -> None:
    t = secured
    seen, missing = t.create("seen"), t.name("missing")
    records = batch(b"v")
    hidden = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)

    def ask(label: str) -> None:
        for version in (3, 9, 11):
            data = [{"name": name, "partition_data": [{"index": 0, "records": records}]} for name in (seen, missing)]
            t.call(f"v{version}: {label}", build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data), version)
        transactional = [{"name": seen, "partition_data": [{"index": 0, "records": hidden}]}]
        for transactional_id_ in ("t", None):
            request = build(
                ApiKey.PRODUCE, transactional_id=transactional_id_, acks=1, timeout_ms=5000, topic_data=transactional
            )
            t.call(f"transactional, id {transactional_id_}: {label}", request, 9)

    variants = of_topics(seen, missing, operations=(Op.DESCRIBE, Op.READ, Op.WRITE))
    variants["one of two"] = [topic(Op.WRITE, seen), transactional_id(Op.DESCRIBE, "t")]
    t.with_rights(variants, ask)
    t.allow(topic(Op.READ, seen))
    data = [{"name": seen, "partition_data": [{"index": 0, "records": records}]}]
    t.call("acks=0", build(ApiKey.PRODUCE, acks=0, timeout_ms=5000, topic_data=data), 9)


def test_fetch(secured: SecuredTranscript) -> None:
    t = secured
    seen, missing = t.create("seen"), t.name("missing")
    ids = {"seen": t.topic_id(seen), "missing": UNKNOWN_ID}
    data = [{"name": seen, "partition_data": [{"index": 0, "records": batch(b"v")}]}]
    t.quietly(build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data), 9)
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    limits = {"max_wait_ms": 10, "min_bytes": 0, "max_bytes": 10_000}

    def ask(label: str) -> None:
        topics = [{"topic": name, "partitions": [part]} for name in (seen, missing)]
        for version in (4, 12):
            t.call(f"v{version}: {label}", build(ApiKey.FETCH, topics=topics, **limits), version)
            request = build(ApiKey.FETCH, replica_id=1, topics=topics, **limits)
            t.call(f"v{version} of replica 1: {label}", request, version)
        by_id = [{"topic_id": found, "partitions": [part]} for found in ids.values()]
        for version in (13, 17):
            t.call(f"v{version}: {label}", build(ApiKey.FETCH, topics=by_id, **limits), version)
        request = build(ApiKey.FETCH, replica_state={"replica_id": 1}, topics=by_id, **limits)
        t.call(f"v17 of replica 1: {label}", request, 17)
        for replica_id in (-2, -3):
            request = build(ApiKey.FETCH, replica_id=replica_id, topics=topics, **limits)
            t.call(f"v12 of replica {replica_id}: {label}", request, 12)

    variants = of_topics(seen, missing, operations=(Op.DESCRIBE, Op.WRITE, Op.READ))
    t.with_rights({**variants, "one of two": [topic(Op.READ, seen)]}, ask)


def test_a_fetch_session_whose_rights_change(secured: SecuredTranscript) -> None:
    t = secured
    seen = t.create("seen")
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    limits = {"max_wait_ms": 10, "min_bytes": 0, "max_bytes": 10_000}
    t.allow(topic(Op.READ, seen))
    first = build(ApiKey.FETCH, session_epoch=0, topics=[{"topic": seen, "partitions": [part]}], **limits)
    opened = t.call("opened", first, 12)
    session = opened.session_id  # type: ignore[union-attr]

    def fetch(label: str, epoch: int) -> None:
        t.call(label, build(ApiKey.FETCH, session_id=session, session_epoch=epoch, **limits), 12)

    fetch("nothing new", 1)
    fetch("nothing new again", 2)
    t.allow()
    fetch("without the right", 3)
    data = [{"name": seen, "partition_data": [{"index": 0, "records": batch(b"secret")}]}]
    t.quietly(build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data), 9)
    fetch("new records without the right", 4)
    t.allow(topic(Op.READ, seen))
    fetch("with the right again", 5)


def test_offsets_of_logs(secured: SecuredTranscript) -> None:
    t = secured
    seen, missing = t.create("seen"), t.name("missing")

    def ask(label: str) -> None:
        named = [{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]} for name in (missing, seen)]
        for version in (0, 1, 7):
            t.call(f"offsets v{version}: {label}", build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=named), version)
        epochs = [{"topic": name, "partitions": [{"partition": 0, "leader_epoch": 0}]} for name in (missing, seen)]
        for version in (2, 4):
            request = build(ApiKey.OFFSET_FOR_LEADER_EPOCH, topics=epochs)
            t.call(f"epochs v{version}: {label}", request, version)
        deleted = [{"name": name, "partitions": [{"partition_index": 0, "offset": 0}]} for name in (seen, missing)]
        for name, one in zip(("seen", "missing"), deleted, strict=True):
            request = build(ApiKey.DELETE_RECORDS, topics=[one], timeout_ms=5000)
            t.call(f"delete records of {name}: {label}", request, 2)
        producers = [{"name": name, "partition_indexes": [0]} for name in (seen, missing, "not/valid")]
        t.call(f"producers: {label}", build(ApiKey.DESCRIBE_PRODUCERS, topics=producers), 0)

    variants = of_topics(seen, missing, operations=(Op.DESCRIBE, Op.READ, Op.DELETE))
    variants["one of two"] = [topic(Op.DESCRIBE, seen)]
    t.with_rights({**variants, "a broker": [cluster(Op.CLUSTER_ACTION)]}, ask)


# -- groups


def test_members_of_groups(secured: SecuredTranscript) -> None:
    t = secured
    mine = t.name("group")

    def ask(label: str) -> None:
        for kind, name in enumerate(("group", "transactional id", "share group")):
            t.call(f"find {name}, v3: {label}", build(ApiKey.FIND_COORDINATOR, key=mine, key_type=kind), 3)
            request = build(ApiKey.FIND_COORDINATOR, coordinator_keys=[mine, "other"], key_type=kind)
            t.call(f"find {name}, v6: {label}", request, 6)
        for version in (0, 4, 9):
            joining = build(
                ApiKey.JOIN_GROUP,
                group_id=mine,
                session_timeout_ms=10,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[{"name": "range", "metadata": b"m"}],
            )
            t.call(f"join v{version}: {label}", joining, version)
        for version, protocol in ((3, None), (5, None), (5, "range")):
            syncing = build(
                ApiKey.SYNC_GROUP,
                group_id=mine,
                generation_id=1,
                member_id="m",
                protocol_type=protocol,
                protocol_name=protocol,
            )
            t.call(f"sync v{version} of {protocol}: {label}", syncing, version)
        beat = build(ApiKey.HEARTBEAT, group_id=mine, generation_id=1, member_id="m")
        t.call(f"heartbeat: {label}", beat, 4)
        t.call(f"leave v2: {label}", build(ApiKey.LEAVE_GROUP, group_id=mine, member_id="m"), 2)
        left = build(ApiKey.LEAVE_GROUP, group_id=mine, members=[{"member_id": "m"}])
        t.call(f"leave v5: {label}", left, 5)
        t.call(f"new heartbeat: {label}", build(ApiKey.CONSUMER_GROUP_HEARTBEAT, group_id=mine, member_id="m"), 0)
        t.call(f"new description: {label}", build(ApiKey.CONSUMER_GROUP_DESCRIBE, group_ids=[mine]), 0)

    t.with_rights(
        {
            "nothing": (),
            "describe": [group(Op.DESCRIBE, mine), transactional_id(Op.DESCRIBE, mine)],
            "read": [group(Op.READ, mine)],
            "a broker": [cluster(Op.CLUSTER_ACTION)],
            "everything": EVERYTHING,
        },
        ask,
    )


def commit(names: Sequence[str]) -> list[dict[str, object]]:
    part = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    return [{"name": name, "partitions": [part]} for name in names]


def test_offsets_of_groups(secured: SecuredTranscript) -> None:
    t = secured
    seen, unseen, missing = t.create("seen"), t.create("unseen"), t.name("missing")
    mine, other = t.name("mine"), t.name("other")
    for one in (mine, other):
        request = build(ApiKey.OFFSET_COMMIT, group_id=one, topics=commit((seen, unseen)))
        t.until_accepted(request, 7)
    names = (missing, seen, unseen)

    def ask(label: str) -> None:
        committed = (missing, seen) if label == "everything" else names  # two that are stored come in any order
        for version in (1, 2, 8):
            request = build(ApiKey.OFFSET_COMMIT, group_id=mine, topics=commit(committed))
            t.call(f"commit v{version}: {label}", request, version)
        asked = [{"name": name, "partition_indexes": [0]} for name in names]
        for version in (1, 2, 5, 7):
            t.call(f"fetch v{version}: {label}", build(ApiKey.OFFSET_FETCH, group_id=mine, topics=asked), version)
        t.call(f"fetch all v2: {label}", build(ApiKey.OFFSET_FETCH, group_id=mine, topics=None), 2)
        groups = [
            {"group_id": other, "topics": None},
            {"group_id": mine, "topics": asked},
            {"group_id": mine, "topics": None},
        ]
        t.call(f"fetch v8: {label}", build(ApiKey.OFFSET_FETCH, groups=groups), 8)
        t.call(f"fetch v9: {label}", build(ApiKey.OFFSET_FETCH, groups=groups[::-1]), 9)

    t.with_rights(
        {
            "nothing": (),
            "describe the group": [group(Op.DESCRIBE, mine)],
            "describe group and topic": [group(Op.DESCRIBE, mine), topic(Op.DESCRIBE, seen)],
            "read group and topic": [group(Op.READ, mine), topic(Op.READ, seen), topic(Op.READ, missing)],
            "everything": EVERYTHING,
        },
        ask,
    )


def test_offsets_in_the_tree(secured: SecuredTranscript) -> None:
    t = secured
    seen, unseen, missing = t.create("seen"), t.create("unseen"), t.name("missing")
    mine = t.name("mine")

    def ask(label: str) -> None:
        for name in (missing, seen, unseen):
            stem = name.partition("-")[0]
            request = build(ApiKey.OFFSET_COMMIT, group_id=mine, topics=commit((name,)))
            t.call(f"commit of {stem}: {label}", request, 0)
            asked = [{"name": name, "partition_indexes": [0]}]
            t.call(f"fetch of {stem}: {label}", build(ApiKey.OFFSET_FETCH, group_id=mine, topics=asked), 0)

    t.with_rights(
        {
            "nothing": (),
            "describe the group": [group(Op.DESCRIBE, mine)],
            "read group and topic": [group(Op.READ, mine), topic(Op.READ, seen), topic(Op.READ, missing)],
            "everything": EVERYTHING,
        },
        ask,
    )


def test_administration_of_groups(secured: SecuredTranscript) -> None:
    t = secured
    seen, missing = t.create("seen"), t.name("missing")
    mine, other = t.name("mine"), t.name("other")
    for one in (mine, other):
        t.until_accepted(build(ApiKey.OFFSET_COMMIT, group_id=one, topics=commit((seen,))), 7)

    def ask(label: str) -> None:
        for operations in (False, True):
            request = build(ApiKey.DESCRIBE_GROUPS, groups=[other, mine], include_authorized_operations=operations)
            t.call(f"describe, operations {operations}: {label}", request, 5)
        listed = t.client.call(build(ApiKey.LIST_GROUPS), 4)
        found = {one.group_id for one in listed.groups}  # type: ignore[attr-defined]
        t.note(f"list: {label}", [mine in found, other in found, listed.error_code])  # type: ignore[attr-defined]
        topics = [{"name": name, "partitions": [{"partition_index": 0}]} for name in (seen, missing)]
        t.call(f"delete offsets: {label}", build(ApiKey.OFFSET_DELETE, group_id=mine, topics=topics), 0)
        t.call(f"delete: {label}", build(ApiKey.DELETE_GROUPS, groups_names=[other, other]), 2)

    t.with_rights(
        {
            "nothing": (),
            "describe": [group(Op.DESCRIBE, mine)],
            "delete": [group(Op.DELETE, mine), topic(Op.DESCRIBE, seen)],
            "delete and read": [group(Op.DELETE, mine), topic(Op.READ, seen), topic(Op.READ, missing)],
            "describe the cluster": [cluster(Op.DESCRIBE)],
            "everything": EVERYTHING,
        },
        ask,
    )


# -- transactions


def test_producers_of_transactions(secured: SecuredTranscript) -> None:
    t = secured
    seen, unseen, missing = t.create("seen"), t.create("unseen"), t.name("missing")
    mine, readers = t.name("mine"), t.name("readers")
    begun = t.until_accepted(build(ApiKey.INIT_PRODUCER_ID, transactional_id=mine, transaction_timeout_ms=60_000), 4)
    producer = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}  # type: ignore[attr-defined]

    def ask(label: str) -> None:
        for transactional in (mine, None):
            request = build(ApiKey.INIT_PRODUCER_ID, transactional_id=transactional, producer_id=5)
            t.call(f"init of {transactional and 'mine'}: {label}", request, 4)
        for version in (0, 3):
            for names in ((seen,), (seen, missing), (seen, unseen), ("__consumer_offsets",)):
                topics = [{"name": name, "partitions": [0]} for name in names]
                request = build(
                    ApiKey.ADD_PARTITIONS_TO_TXN,
                    v3_and_below_transactional_id=mine,
                    v3_and_below_producer_id=1234567,
                    v3_and_below_topics=topics,
                )
                stems = ", ".join(name.partition("-")[0] for name in names)
                t.call(f"add {stems} v{version}: {label}", request, version)
        batched = {"transactional_id": mine, "verify_only": True, **producer}
        batched["topics"] = [{"name": missing, "partitions": [0]}]
        for version in (4, 5):
            request = build(ApiKey.ADD_PARTITIONS_TO_TXN, transactions=[batched])
            t.call(f"add v{version}: {label}", request, version)
        request = build(ApiKey.ADD_OFFSETS_TO_TXN, transactional_id=mine, group_id=readers, producer_id=1234567)
        t.call(f"add offsets: {label}", request, 3)
        for version in (0, 3):
            request = build(
                ApiKey.TXN_OFFSET_COMMIT,
                transactional_id=mine,
                group_id=readers,
                topics=commit((missing, seen) if label == "everything" else (missing, seen, unseen)),
                **producer,
            )
            t.call(f"commit v{version}: {label}", request, version)
        t.call(f"end: {label}", build(ApiKey.END_TXN, transactional_id=mine, producer_id=1234567), 3)

    own = transactional_id(Op.WRITE, mine)
    t.with_rights(
        {
            "nothing": (),
            "describe": [transactional_id(Op.DESCRIBE, mine), group(Op.READ, readers)],
            "write some topic": [topic(Op.WRITE, "any"), cluster(Op.DESCRIBE)],
            "idempotent": [cluster(Op.IDEMPOTENT_WRITE)],
            "a broker": [cluster(Op.CLUSTER_ACTION)],
            "write": [own],
            "write and group": [own, group(Op.READ, readers), topic(Op.READ, seen)],
            "write and topic": [own, topic(Op.WRITE, seen), topic(Op.WRITE, missing)],
            "everything": EVERYTHING,
        },
        ask,
    )


def test_administration_of_transactions(secured: SecuredTranscript) -> None:
    t = secured
    seen, unseen = t.create("seen"), t.create("unseen")
    mine, other = t.name("mine"), t.name("other")
    for one in (mine, other):
        new = build(ApiKey.INIT_PRODUCER_ID, transactional_id=one, transaction_timeout_ms=60_000)
        begun = t.until_accepted(new, 4)
        added = build(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            v3_and_below_transactional_id=one,
            v3_and_below_producer_id=begun.producer_id,  # type: ignore[attr-defined]
            v3_and_below_producer_epoch=begun.producer_epoch,  # type: ignore[attr-defined]
            v3_and_below_topics=[{"name": name, "partitions": [0]} for name in (seen, unseen)],
        )
        t.quietly(added, 3)

    def ask(label: str) -> None:
        request = build(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=[mine, other, "none"])
        t.call(f"describe: {label}", request, 0)
        listed = t.client.call(build(ApiKey.LIST_TRANSACTIONS), 1)
        found = {one.transactional_id for one in listed.transaction_states}  # type: ignore[attr-defined]
        t.note(f"list: {label}", [mine in found, other in found])
        topics = [{"name": "no-such-topic", "partition_indexes": [0]}]
        marker = {"producer_id": 1, "producer_epoch": 0, "transaction_result": True, "topics": topics}
        t.call(f"markers: {label}", build(ApiKey.WRITE_TXN_MARKERS, markers=[marker]), 1)

    t.with_rights(
        {
            "nothing": (),
            "describe": [transactional_id(Op.DESCRIBE, mine), topic(Op.DESCRIBE, seen)],
            "describe all": [transactional_id(Op.DESCRIBE, "*"), topic(Op.READ, unseen)],
            "alter the cluster": [cluster(Op.ALTER)],
            "a broker": [cluster(Op.CLUSTER_ACTION)],
            "everything": EVERYTHING,
        },
        ask,
    )

"""What each API asks an authorizer: the operations and resources, their order, how often a resource is named, and
whether the audit log may leave the answer out.

The answers are compared with Apache Kafka's in
`tests/conformance/transcripts/authorization/test_transcripts_authorization.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from odradek.broker.security.authorizer.ports import Action
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.schema import Request
from tests.support.in_process.in_process_broker import FakeConnection, InProcessBroker
from tests.support.in_process.security.scripted_authorizer import ScriptedAuthorizer
from tests.support.transcripts.rights import Right, cluster, group, topic, transactional_id
from tests.support.wire.requests import batch, build

Op = AclOperation
UNKNOWN_ID = bytes(15) + b"\x07"


@pytest.fixture
def authorizer(broker: InProcessBroker) -> Iterator[ScriptedAuthorizer]:
    """Allows nothing at first."""
    for name in ("a", "b"):
        if not broker.services.metadata_cache.contains(name):
            broker.create_topic(name)
    for key_type, name in enumerate(("__consumer_offsets", "__transaction_state")):
        if not broker.services.metadata_cache.contains(name):
            broker.call(build(ApiKey.FIND_COORDINATOR, coordinator_keys=["g"], key_type=key_type), 4)
            assert broker.settle(lambda: broker.services.metadata_cache.contains(name))  # noqa: B023
    scripted = ScriptedAuthorizer()
    broker.services.authorizer = scripted
    yield scripted
    broker.services.authorizer = None


def asked(right: Right, count: int = 1, *, denial_is_quiet: bool = False) -> Action:
    return Action(*right, count, log_if_denied=not denial_is_quiet)


def partition_data() -> list[dict[str, object]]:
    return [{"index": index, "records": batch(b"v")} for index in (0, 1)]


TRANSACTIONAL = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
PRODUCED = [{"name": name, "partition_data": partition_data()} for name in ("a", "no")]
PRODUCED_IN_TRANSACTION = [{"name": "a", "partition_data": [{"index": 0, "records": TRANSACTIONAL}]}]
FETCHED = [
    {
        "topic": name,
        "partitions": [{"partition": index, "partition_max_bytes": 9} for index in (0, 1)],
    }
    for name in ("a", "no")
]
COMMITTED = [
    {"name": name, "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}]}
    for name in ("a", "no")
]
INDEXES = [{"name": name, "partition_indexes": [0, 1]} for name in ("a", "no")]
ADDED = [{"name": name, "partitions": [0, 1]} for name in ("a", "__consumer_offsets")]
CONFIGS = [{"name": "retention.ms", "value": "1000"}]

READ_G, DESCRIBE_G, DELETE_G = (group(op, "g") for op in (Op.READ, Op.DESCRIBE, Op.DELETE))
WRITE_T, DESCRIBE_T = (transactional_id(op, "t") for op in (Op.WRITE, Op.DESCRIBE))
CLUSTER = {op: cluster(op) for op in AclOperation}

Case = tuple[Request, int, list[Action]]

OF_RECORDS: dict[str, Case] = {
    "produce: topics, each with its mentions": (
        build(ApiKey.PRODUCE, acks=1, timeout_ms=1, topic_data=[*PRODUCED, PRODUCED[0]]),
        9,
        [asked(topic(Op.WRITE, "a"), 2), asked(topic(Op.WRITE, "no"))],
    ),
    "produce: the transactional id of the batches first": (
        build(ApiKey.PRODUCE, transactional_id="t", acks=1, timeout_ms=1, topic_data=PRODUCED_IN_TRANSACTION),
        9,
        [asked(WRITE_T)],
    ),
    "produce: a hidden transactional id": (
        build(ApiKey.PRODUCE, transactional_id=None, acks=1, timeout_ms=1, topic_data=PRODUCED_IN_TRANSACTION),
        9,
        [],
    ),
    "fetch: each partition mentions its topic": (
        build(ApiKey.FETCH, topics=FETCHED, max_wait_ms=0, min_bytes=0),
        12,
        [asked(topic(Op.READ, "a"), 2), asked(topic(Op.READ, "no"), 2)],
    ),
    "fetch of a follower": (
        build(ApiKey.FETCH, topics=FETCHED, replica_id=3, max_wait_ms=0, min_bytes=0),
        12,
        [asked(CLUSTER[Op.CLUSTER_ACTION])],
    ),
    "fetch of an unknown id": (
        build(ApiKey.FETCH, topics=[{"topic_id": UNKNOWN_ID, "partitions": [{"partition": 0}]}], max_wait_ms=0),
        13,
        [],
    ),
    "list offsets": (
        build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=[{"name": n, "partitions": []} for n in ("a", "no", "a")]),
        7,
        [asked(topic(Op.DESCRIBE, "a"), 2), asked(topic(Op.DESCRIBE, "no"))],
    ),
    "ends of epochs": (
        build(ApiKey.OFFSET_FOR_LEADER_EPOCH, topics=[{"topic": "a", "partitions": []}]),
        4,
        [asked(CLUSTER[Op.CLUSTER_ACTION], denial_is_quiet=True), asked(topic(Op.DESCRIBE, "a"))],
    ),
    "delete records": (
        build(ApiKey.DELETE_RECORDS, topics=[{"name": "a", "partitions": []}], timeout_ms=1),
        2,
        [asked(topic(Op.DELETE, "a"))],
    ),
    "producers: each mention by itself, invalid names never": (
        build(ApiKey.DESCRIBE_PRODUCERS, topics=[{"name": n, "partition_indexes": [0]} for n in ("a", "a", "no/t")]),
        0,
        [asked(topic(Op.READ, "a")), asked(topic(Op.READ, "a"))],
    ),
}

OF_GROUPS: dict[str, Case] = {
    "coordinators of groups": (
        build(ApiKey.FIND_COORDINATOR, coordinator_keys=["g", "g"], key_type=0),
        4,
        [asked(DESCRIBE_G), asked(DESCRIBE_G)],
    ),
    "coordinator of a transactional id": (
        build(ApiKey.FIND_COORDINATOR, key="t", key_type=1),
        2,
        [asked(DESCRIBE_T)],
    ),
    "coordinator of a share group": (
        build(ApiKey.FIND_COORDINATOR, coordinator_keys=["g"], key_type=2),
        6,
        [asked(CLUSTER[Op.CLUSTER_ACTION])],
    ),
    "join": (build(ApiKey.JOIN_GROUP, group_id="g"), 9, [asked(READ_G)]),
    "sync": (build(ApiKey.SYNC_GROUP, group_id="g", protocol_type="c", protocol_name="r"), 5, [asked(READ_G)]),
    "sync without a protocol": (
        build(ApiKey.SYNC_GROUP, group_id="g", protocol_type=None, protocol_name="r"),
        5,
        [],
    ),
    "heartbeat": (build(ApiKey.HEARTBEAT, group_id="g"), 4, [asked(READ_G)]),
    "leave": (build(ApiKey.LEAVE_GROUP, group_id="g", members=[{"member_id": "m"}]), 5, [asked(READ_G)]),
    "describe": (build(ApiKey.DESCRIBE_GROUPS, groups=["g"]), 5, [asked(DESCRIBE_G)]),
    "delete: each once": (build(ApiKey.DELETE_GROUPS, groups_names=["g", "g"]), 2, [asked(DELETE_G)]),
    "commit": (build(ApiKey.OFFSET_COMMIT, group_id="g", topics=COMMITTED), 8, [asked(READ_G)]),
    "fetch": (build(ApiKey.OFFSET_FETCH, group_id="g", topics=INDEXES), 7, [asked(DESCRIBE_G)]),
    "delete offsets": (build(ApiKey.OFFSET_DELETE, group_id="g"), 0, [asked(DELETE_G)]),
    "new heartbeat": (build(ApiKey.CONSUMER_GROUP_HEARTBEAT, group_id="g"), 0, []),
    "new description": (build(ApiKey.CONSUMER_GROUP_DESCRIBE, group_ids=["g"]), 0, []),
}

OF_TRANSACTIONS: dict[str, Case] = {
    "init with a transactional id": (build(ApiKey.INIT_PRODUCER_ID, transactional_id="t"), 4, [asked(WRITE_T)]),
    "init without": (
        build(ApiKey.INIT_PRODUCER_ID, transactional_id=None),
        4,
        [asked(CLUSTER[Op.IDEMPOTENT_WRITE], denial_is_quiet=True)],
    ),
    "add partitions": (
        build(ApiKey.ADD_PARTITIONS_TO_TXN, v3_and_below_transactional_id="t", v3_and_below_topics=ADDED),
        3,
        [asked(WRITE_T)],
    ),
    "add partitions for another broker": (
        build(ApiKey.ADD_PARTITIONS_TO_TXN, transactions=[{"transactional_id": "t", "topics": ADDED}]),
        4,
        [asked(CLUSTER[Op.CLUSTER_ACTION])],
    ),
    "add offsets": (build(ApiKey.ADD_OFFSETS_TO_TXN, transactional_id="t", group_id="g"), 3, [asked(WRITE_T)]),
    "commit offsets": (build(ApiKey.TXN_OFFSET_COMMIT, transactional_id="t", group_id="g"), 3, [asked(WRITE_T)]),
    "end": (build(ApiKey.END_TXN, transactional_id="t"), 3, [asked(WRITE_T)]),
    "describe": (build(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=["t"]), 0, [asked(DESCRIBE_T)]),
    "markers": (
        build(ApiKey.WRITE_TXN_MARKERS),
        1,
        [asked(CLUSTER[Op.ALTER], denial_is_quiet=True), asked(CLUSTER[Op.CLUSTER_ACTION])],
    ),
}

OF_TOPICS: dict[str, Case] = {
    "metadata: each once": (
        build(ApiKey.METADATA, topics=[{"name": "a"}, {"name": "no"}, {"name": "a"}]),
        12,
        [asked(topic(Op.DESCRIBE, "a")), asked(topic(Op.DESCRIBE, "no"))],
    ),
    "metadata of unknown ids": (build(ApiKey.METADATA, topics=[{"topic_id": UNKNOWN_ID, "name": None}]), 12, []),
    "create": (
        build(ApiKey.CREATE_TOPICS, topics=[{"name": name} for name in ("n", "__cluster_metadata", "n")]),
        7,
        [
            asked(CLUSTER[Op.CREATE], denial_is_quiet=True),
            asked(topic(Op.CREATE, "n")),
            asked(topic(Op.DESCRIBE_CONFIGS, "n"), denial_is_quiet=True),
        ],
    ),
    "create partitions: not of topics that are named twice": (
        build(ApiKey.CREATE_PARTITIONS, topics=[{"name": name, "count": 2} for name in ("a", "b", "b")]),
        3,
        [asked(topic(Op.ALTER, "a"))],
    ),
    "delete": (
        build(ApiKey.DELETE_TOPICS, topics=[{"name": "a"}, {"name": None, "topic_id": UNKNOWN_ID}]),
        6,
        [asked(topic(Op.DESCRIBE, "a")), asked(topic(Op.DELETE, "a"))],
    ),
    "log directories": (build(ApiKey.DESCRIBE_LOG_DIRS, topics=None), 4, [asked(CLUSTER[Op.DESCRIBE])]),
    "moves": (build(ApiKey.ALTER_REPLICA_LOG_DIRS), 2, [asked(CLUSTER[Op.ALTER])]),
    "elections": (build(ApiKey.ELECT_LEADERS, topic_partitions=None), 2, [asked(CLUSTER[Op.ALTER])]),
    "reassign": (build(ApiKey.ALTER_PARTITION_REASSIGNMENTS), 0, [asked(CLUSTER[Op.ALTER])]),
    "reassignments": (build(ApiKey.LIST_PARTITION_REASSIGNMENTS, topics=None), 0, [asked(CLUSTER[Op.DESCRIBE])]),
    "cluster": (build(ApiKey.DESCRIBE_CLUSTER), 1, []),
    "cluster with operations": (
        build(ApiKey.DESCRIBE_CLUSTER, include_cluster_authorized_operations=True),
        1,
        [asked(CLUSTER[Op.DESCRIBE])],
    ),
}


def of_configs(*resources: tuple[int, str]) -> list[dict[str, object]]:
    return [{"resource_type": kind, "resource_name": name, "configs": CONFIGS} for kind, name in resources]


DESCRIBED = [{"resource_type": kind, "resource_name": name} for kind, name in ((2, "a"), (4, "0"), (8, "0"))]
ALTERED = of_configs((2, "a"), (2, "no"))

OF_CONFIGS: dict[str, Case] = {
    "describe: the cluster for brokers and loggers": (
        build(ApiKey.DESCRIBE_CONFIGS, resources=DESCRIBED),
        4,
        [asked(topic(Op.DESCRIBE_CONFIGS, "a")), *[asked(CLUSTER[Op.DESCRIBE_CONFIGS])] * 2],
    ),
    "alter": (
        build(ApiKey.ALTER_CONFIGS, resources=ALTERED),
        2,
        [asked(topic(Op.ALTER_CONFIGS, "a")), asked(topic(Op.ALTER_CONFIGS, "no"))],
    ),
    "alter incrementally": (
        build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=ALTERED),
        1,
        [asked(topic(Op.ALTER_CONFIGS, "a")), asked(topic(Op.ALTER_CONFIGS, "no"))],
    ),
    "alter a logger": (
        build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=of_configs((8, "9"))),
        1,
        [asked(CLUSTER[Op.ALTER_CONFIGS])],
    ),
    "alter another broker: refused before": (
        build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=of_configs((4, "9"))),
        1,
        [],
    ),
    "quotas": (build(ApiKey.DESCRIBE_CLIENT_QUOTAS), 1, [asked(CLUSTER[Op.DESCRIBE_CONFIGS])]),
    "alter quotas": (build(ApiKey.ALTER_CLIENT_QUOTAS), 1, [asked(CLUSTER[Op.ALTER_CONFIGS])]),
    "features": (build(ApiKey.UPDATE_FEATURES), 1, [asked(CLUSTER[Op.ALTER])]),
    "alter users": (build(ApiKey.ALTER_USER_SCRAM_CREDENTIALS), 0, [asked(CLUSTER[Op.ALTER])]),
    "users": (build(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, users=[]), 0, [asked(CLUSTER[Op.DESCRIBE])]),
}

OF_BROKERS: dict[str, Case] = {
    key.name: (build(key), API[key].max_version, [asked(CLUSTER[Op.CLUSTER_ACTION])])
    for key in (
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
    )
}

CASES = {
    f"{family}, {label}": case
    for family, cases in {
        "records": OF_RECORDS,
        "groups": OF_GROUPS,
        "transactions": OF_TRANSACTIONS,
        "topics": OF_TOPICS,
        "configs": OF_CONFIGS,
        "brokers": OF_BROKERS,
    }.items()
    for label, case in cases.items()
}


@pytest.mark.parametrize("label", CASES)
def test_what_a_client_without_rights_is_asked_for(
    broker: InProcessBroker, authorizer: ScriptedAuthorizer, label: str
) -> None:
    request, version, expected = CASES[label]
    broker.call(request, version)
    assert authorizer.asked == expected


ALLOWED: dict[str, tuple[Request, int, list[Right], list[Action]]] = {
    "produce in a transaction": (
        OF_RECORDS["produce: the transactional id of the batches first"][0],
        9,
        [WRITE_T],
        [asked(WRITE_T), asked(topic(Op.WRITE, "a"))],
    ),
    "ends of epochs for a broker": (
        OF_RECORDS["ends of epochs"][0],
        4,
        [CLUSTER[Op.CLUSTER_ACTION]],
        [asked(CLUSTER[Op.CLUSTER_ACTION], denial_is_quiet=True)],
    ),
    "commit": (
        OF_GROUPS["commit"][0],
        8,
        [READ_G],
        [asked(READ_G), asked(topic(Op.READ, "a")), asked(topic(Op.READ, "no"))],
    ),
    "delete offsets": (
        build(ApiKey.OFFSET_DELETE, group_id="g", topics=[{"name": "a", "partitions": []}]),
        0,
        [DELETE_G],
        [asked(DELETE_G), asked(topic(Op.READ, "a"))],
    ),
    "fetch offsets: a topic counts once": (
        OF_GROUPS["fetch"][0],
        7,
        [DESCRIBE_G],
        [asked(DESCRIBE_G), asked(topic(Op.DESCRIBE, "a")), asked(topic(Op.DESCRIBE, "no"))],
    ),
    "add offsets": (
        OF_TRANSACTIONS["add offsets"][0],
        3,
        [WRITE_T],
        [asked(WRITE_T), asked(READ_G)],
    ),
    "commit offsets in a transaction": (
        build(ApiKey.TXN_OFFSET_COMMIT, transactional_id="t", group_id="g", topics=COMMITTED),
        3,
        [WRITE_T, READ_G],
        [asked(WRITE_T), asked(READ_G), asked(topic(Op.READ, "a")), asked(topic(Op.READ, "no"))],
    ),
    "add partitions: each counts, those of internal topics are not asked": (
        OF_TRANSACTIONS["add partitions"][0],
        3,
        [WRITE_T],
        [asked(WRITE_T), asked(topic(Op.WRITE, "a"), 2)],
    ),
    "markers of an administrator": (
        OF_TRANSACTIONS["markers"][0],
        1,
        [CLUSTER[Op.ALTER]],
        [asked(CLUSTER[Op.ALTER], denial_is_quiet=True)],
    ),
    "create topics with the cluster's right": (
        build(ApiKey.CREATE_TOPICS, topics=[{"name": "n"}], validate_only=True),
        7,
        [CLUSTER[Op.CREATE]],
        [
            asked(CLUSTER[Op.CREATE], denial_is_quiet=True),
            asked(topic(Op.DESCRIBE_CONFIGS, "n"), denial_is_quiet=True),
        ],
    ),
    "automatic creation": (
        build(ApiKey.METADATA, topics=[{"name": "no"}], allow_auto_topic_creation=True),
        12,
        [topic(Op.DESCRIBE, "no")],
        [
            asked(topic(Op.DESCRIBE, "no")),
            asked(CLUSTER[Op.CREATE], denial_is_quiet=True),
            asked(topic(Op.CREATE, "no")),
        ],
    ),
}


@pytest.mark.parametrize("label", ALLOWED)
def test_what_a_client_with_some_rights_is_asked_for(
    broker: InProcessBroker, authorizer: ScriptedAuthorizer, label: str
) -> None:
    request, version, authorizer.rights, expected = ALLOWED[label]
    broker.call(request, version)
    assert authorizer.asked == expected


def test_lists_leave_out_what_is_not_allowed_without_a_line_in_the_audit_log(
    broker: InProcessBroker, authorizer: ScriptedAuthorizer
) -> None:
    broker.call(build(ApiKey.METADATA, topics=None), 12)
    assert {action.resource_name for action in authorizer.asked} >= {"a", "b", "__consumer_offsets"}
    assert not any(action.log_if_denied for action in authorizer.asked)
    authorizer.asked.clear()
    broker.call(build(ApiKey.LIST_GROUPS), 4)
    assert authorizer.asked[0] == asked(CLUSTER[Op.DESCRIBE], denial_is_quiet=True)
    assert not any(action.log_if_denied for action in authorizer.asked)


def test_a_producer_id_is_for_everybody_who_may_write_some_topic(
    broker: InProcessBroker, authorizer: ScriptedAuthorizer
) -> None:
    request = build(ApiKey.INIT_PRODUCER_ID, transactional_id=None)
    assert broker.call(request, 4).error_code == 31  # type: ignore[attr-defined]
    authorizer.rights = [topic(Op.WRITE, "any")]
    assert broker.call(request, 4).error_code == 0  # type: ignore[attr-defined]
    assert authorizer.asked_by_type == [(Op.WRITE, ResourceType.TOPIC)] * 2


def test_each_fetch_of_a_session_asks_for_all_its_topics(
    broker: InProcessBroker, authorizer: ScriptedAuthorizer
) -> None:
    """Also for partitions that were read to their end: the right may be taken away meanwhile."""
    authorizer.rights = [topic(Op.READ, "a")]
    opened = broker.call(build(ApiKey.FETCH, session_epoch=0, topics=FETCHED[:1], max_wait_ms=0), 12)
    session = opened.session_id  # type: ignore[attr-defined]
    for epoch in (1, 2, 3):
        authorizer.asked.clear()
        broker.call(build(ApiKey.FETCH, session_id=session, session_epoch=epoch, max_wait_ms=0), 12)
        assert authorizer.asked == [asked(topic(Op.READ, "a"), 2)]
    authorizer.rights = []
    refused = broker.call(build(ApiKey.FETCH, session_id=session, session_epoch=4, max_wait_ms=0), 12)
    codes = [part.error_code for answer in refused.responses for part in answer.partitions]  # type: ignore[attr-defined]
    assert codes == [29, 29]


def test_the_session_of_a_follower_opens_no_topic_to_a_client(
    broker: InProcessBroker, authorizer: ScriptedAuthorizer
) -> None:
    """Neither to a consumer that has found out its id, nor to one that calls itself a replica."""
    authorizer.rights = [CLUSTER[Op.CLUSTER_ACTION]]
    one = {"topic": "a", "partitions": [{"partition": 0, "partition_max_bytes": 999, "current_leader_epoch": -1}]}
    opening = build(ApiKey.FETCH, replica_id=-3, session_epoch=0, topics=[one], max_wait_ms=0)
    assert broker.call(opening, 12).responses[0].partitions[0].error_code == 29  # type: ignore[attr-defined]
    opening = build(ApiKey.FETCH, replica_id=3, session_epoch=0, topics=[one], max_wait_ms=0)
    session = broker.call(opening, 12).session_id  # type: ignore[attr-defined]
    assert session
    for epoch in (1, 2):
        request = build(ApiKey.FETCH, replica_id=3, session_id=session, session_epoch=epoch, max_wait_ms=0)
        broker.call(request, 12)
    authorizer.rights = []
    for epoch, replica_id in ((3, -1), (4, 3)):
        request = build(ApiKey.FETCH, replica_id=replica_id, session_id=session, session_epoch=epoch, max_wait_ms=0)
        answer = broker.call(request, 12)
        parts = [part for found in answer.responses for part in found.partitions]  # type: ignore[attr-defined]
        assert [(part.error_code, bytes(part.records or b"")) for part in parts] == [(29, b"")]


def test_a_refusal_names_the_request_and_its_client(broker: InProcessBroker, authorizer: ScriptedAuthorizer) -> None:
    answer = broker.call(build(ApiKey.LIST_PARTITION_REASSIGNMENTS, topics=None), 0)
    assert answer.error_code == 31  # type: ignore[attr-defined]
    message = "Request ListPartitionReassignments of User:ANONYMOUS from 10.0.0.7 is not authorized."
    assert answer.error_message == message  # type: ignore[attr-defined]


def test_an_unauthorized_produce_without_acks_closes_the_connection(
    broker: InProcessBroker, authorizer: ScriptedAuthorizer
) -> None:
    waiting = broker.send(build(ApiKey.PRODUCE, acks=0, timeout_ms=1, topic_data=PRODUCED), 9)
    broker.finish_soon(waiting)
    assert waiting.connection.close_reason is not None


def test_a_request_of_the_broker_to_itself_needs_no_right(
    broker: InProcessBroker, authorizer: ScriptedAuthorizer
) -> None:
    itself = FakeConnection()
    itself.is_own_broker = True
    answer = broker.call(build(ApiKey.UPDATE_METADATA, controller_epoch=0), 8, connection=itself)
    assert answer.error_code == 11  # type: ignore[attr-defined]  # asked for nothing, and refused for its epoch
    assert authorizer.asked == []


def test_many_topics_are_asked_in_small_numbers(broker: InProcessBroker, authorizer: ScriptedAuthorizer) -> None:
    sizes = []

    class Counted(ScriptedAuthorizer):
        def authorize(self, ctx: object, actions: object, /) -> list[bool]:
            sizes.append(len(actions))  # type: ignore[arg-type]
            return super().authorize(ctx, actions)  # type: ignore[arg-type]

    broker.services.authorizer = Counted()
    topics = [{"name": f"no-{number}"} for number in range(150)]
    broker.call(build(ApiKey.METADATA, topics=topics), 12)
    assert sizes == [64, 64, 22]


def test_nothing_is_asked_of_the_cluster_by_another_name(authorizer: ScriptedAuthorizer) -> None:
    assert {action.resource_name for _, _, actions in CASES.values() for action in actions if action[1] == 4} == {
        CLUSTER_NAME
    }

"""ElectLeaders, UpdateFeatures and the requests about reassignments, on a broker that has every replica."""

from __future__ import annotations

from collections.abc import Callable, Coroutine

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode, KafkaError
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.wire.requests import build

NONE = ErrorCode.NONE
PREFERRED, UNCLEAN = 0, 1


@pytest.fixture(autouse=True)
def topics(broker: InProcessBroker) -> None:
    if not broker.services.metadata_cache.contains("t"):
        broker.create_topic("t", 2)


def elect(*partitions: int, topic: str = "t", **fields: object) -> Request:
    fields.setdefault("topic_partitions", [{"topic": topic, "partitions": list(partitions)}])
    return build(ApiKey.ELECT_LEADERS, timeout_ms=1_000, **fields)


def elected(broker: InProcessBroker, request: Request, version: int = 2) -> dict[tuple[str, int], int]:
    response = broker.call(request, version)
    assert response.error_code == NONE  # type: ignore[attr-defined]
    return {
        (topic.topic, part.partition_id): part.error_code
        for topic in response.replica_election_results  # type: ignore[attr-defined]
        for part in topic.partition_result
    }


@pytest.mark.parametrize("version", range(3))
def test_leader_that_is_preferred_already_needs_no_election(broker: InProcessBroker, version: int) -> None:
    assert elected(broker, elect(0, 1), version) == {
        ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("t", 1): ErrorCode.ELECTION_NOT_NEEDED,
    }


def test_of_all_partitions_those_without_an_election_are_left_out(broker: InProcessBroker) -> None:
    assert elected(broker, elect(topic_partitions=None)) == {}


def test_unknown_partition(broker: InProcessBroker) -> None:
    assert elected(broker, elect(9)) == {("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert elected(broker, elect(0, topic="none")) == {("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_unclean_election_is_not_needed_while_there_is_a_leader(broker: InProcessBroker) -> None:
    assert elected(broker, elect(0, election_type=UNCLEAN)) == {("t", 0): ErrorCode.ELECTION_NOT_NEEDED}


def test_who_is_not_the_controller_says_so_of_each_partition(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(broker.services.controller), "elect_leaders", refuse_with(ErrorCode.NOT_CONTROLLER))
    for version in range(3):
        response = broker.call(elect(0), version)
        assert response.error_code == NONE  # type: ignore[attr-defined]
        (topic,) = response.replica_election_results  # type: ignore[attr-defined]
        assert [part.error_code for part in topic.partition_result] == [ErrorCode.NOT_CONTROLLER]


def test_refusal_of_version_0_has_no_error_on_top(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = ErrorCode.UNKNOWN_SERVER_ERROR
    monkeypatch.setattr(type(broker.services.controller), "elect_leaders", refuse_with(refused))
    for version in range(3):
        response = broker.call(elect(0), version)
        assert response.error_code == (NONE if version == 0 else refused)  # type: ignore[attr-defined]
        (topic,) = response.replica_election_results  # type: ignore[attr-defined]
        assert [part.error_code for part in topic.partition_result] == [refused]


def refuse_with(code: ErrorCode) -> Callable[..., Coroutine[object, object, None]]:
    async def refuse(*arguments: object) -> None:
        raise KafkaError(code)

    return refuse


def test_unknown_election_type_refuses_every_partition(broker: InProcessBroker) -> None:
    response = broker.call(elect(0, 1, election_type=9), 2)
    assert response.error_code == ErrorCode.INVALID_REQUEST  # type: ignore[attr-defined]
    (topic,) = response.replica_election_results  # type: ignore[attr-defined]
    assert [part.error_code for part in topic.partition_result] == [ErrorCode.INVALID_REQUEST] * 2


# Reassignments


def reassign(broker: InProcessBroker, topic: str, partition: int, replicas: list[int] | None) -> tuple[int, str | None]:
    asked = [{"name": topic, "partitions": [{"partition_index": partition, "replicas": replicas}]}]
    request = build(ApiKey.ALTER_PARTITION_REASSIGNMENTS, topics=asked, timeout_ms=1_000)
    response = broker.call(request, 0)
    assert (response.error_code, response.error_message) == (NONE, "")  # type: ignore[attr-defined]
    ((part,),) = [found.partitions for found in response.responses]  # type: ignore[attr-defined]
    return part.error_code, part.error_message


@pytest.mark.parametrize(
    ("partition", "replicas", "error"),
    [
        (0, [0], NONE),
        (0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        (0, [7], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, [0, 0], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (9, [0], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_reassignments(broker: InProcessBroker, partition: int, replicas: list[int] | None, error: ErrorCode) -> None:
    found, message = reassign(broker, "t", partition, replicas)
    assert found == error
    assert (message is None) == (error == NONE)


@pytest.mark.parametrize("topics", [None, [], [{"name": "t", "partition_indexes": [0]}]])
def test_nothing_is_being_reassigned(broker: InProcessBroker, topics: list[object] | None) -> None:
    response = broker.call(build(ApiKey.LIST_PARTITION_REASSIGNMENTS, topics=topics), 0)
    assert (response.error_code, response.error_message, response.topics) == (NONE, "", [])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("version", "update", "message"),
    [
        (0, {"max_version_level": 1}, "Could not apply finalized feature update because the provided feature is not"),
        (0, {"allow_downgrade": True}, "Can not delete non-existing finalized feature."),
        (0, {}, "Can not provide versionLevel: 0 less than 1"),
        (1, {}, "Can not provide versionLevel: 0 less than 1"),
        (1, {"upgrade_type": 3}, "Can not delete non-existing finalized feature."),
        (1, {"upgrade_type": 9}, "Received unknown upgrade type."),
    ],
)
def test_there_are_no_features_to_finalise(
    broker: InProcessBroker, version: int, update: dict[str, object], message: str
) -> None:
    response = broker.call(build(ApiKey.UPDATE_FEATURES, feature_updates=[{"feature": "f", **update}]), version)
    assert (response.error_code, response.error_message) == (NONE, None)  # type: ignore[attr-defined]
    (result,) = response.results  # type: ignore[attr-defined]
    assert (result.feature, result.error_code) == ("f", ErrorCode.INVALID_REQUEST)
    assert result.error_message.startswith(message)


def test_a_feature_that_is_taken_away(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    async def take_away(self: object, updates: object) -> dict[str, KafkaError | None]:
        return {"f": None}

    monkeypatch.setattr(type(broker.services.controller), "update_features", take_away)
    response = broker.call(build(ApiKey.UPDATE_FEATURES), 1)
    (result,) = response.results  # type: ignore[attr-defined]
    assert (result.feature, result.error_code, result.error_message) == ("f", NONE, "NONE")


@pytest.mark.parametrize(
    ("request_", "method", "array"),
    [
        (
            build(ApiKey.ALTER_PARTITION_REASSIGNMENTS, topics=[{"name": "t", "partitions": [{"partition_index": 0}]}]),
            "alter_partition_reassignments",
            "responses",
        ),
        (
            build(ApiKey.LIST_PARTITION_REASSIGNMENTS, topics=[{"name": "t", "partition_indexes": [0]}]),
            "list_partition_reassignments",
            "topics",
        ),
        (build(ApiKey.UPDATE_FEATURES, feature_updates=[{"feature": "f"}]), "update_features", "results"),
    ],
)
def test_who_is_not_the_controller_says_so_once(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, request_: Request, method: str, array: str
) -> None:
    code = ErrorCode.NOT_CONTROLLER
    monkeypatch.setattr(type(broker.services.controller), method, refuse_with(code))
    response = broker.call(request_, 0)
    answered = (response.error_code, response.error_message)  # type: ignore[attr-defined]
    assert answered == (code, DEFAULT_MESSAGES[code])
    assert getattr(response, array) == []
    refused = ErrorCode.UNKNOWN_SERVER_ERROR
    monkeypatch.setattr(type(broker.services.controller), method, refuse_with(refused))
    assert broker.call(request_, 0).error_code == refused  # type: ignore[attr-defined]

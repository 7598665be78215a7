from __future__ import annotations

from importlib import import_module

import pytest

from odradek.broker.apis import HANDLERS
from odradek.broker.dispatch import Route
from odradek.broker.error_responses import ENTITIES
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode
from odradek.protocol.made_once import FEW
from odradek.timer.sliced_work import run_through
from tests.support.wire.requests import build

CODE = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
VERSIONS = [(key, version) for key, spec in API.items() for version in range(spec.min_version, spec.max_version + 1)]


def refuse(request: Request, version: int, code: ErrorCode = CODE) -> Response:
    """What the broker answers: with the function beside the handler, if there is one, else by the table."""
    spec = API[ApiKey(request.API_KEY)]
    handler = import_module(HANDLERS[spec.key])
    response = run_through(Route(spec, handler).failed(request, version, code, "no"))
    assert response is not None
    return response


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_error_response_of_every_api_and_version_can_be_sent(key: ApiKey, version: int) -> None:
    response = refuse(build(key, **({"acks": 1} if key == ApiKey.PRODUCE else {})), version)
    data = encode(response, version)
    decoded = decode(API[key].response_type(), memoryview(data), version)
    assert encode(decoded, version) == data


@pytest.mark.parametrize("key", ENTITIES)
def test_an_api_with_a_function_of_its_own_is_not_in_the_table(key: ApiKey) -> None:
    assert not hasattr(import_module(HANDLERS[key]), "error_response")


def test_table_names_fields_that_exist() -> None:
    for key, all_entities in ENTITIES.items():
        for entities in all_entities:
            request, response = API[key].request_type(), API[key].response_type()
            assert entities.of in {field.name for field in request.FIELDS}, key
            assert entities.into in {field.name for field in response.FIELDS}, key


def test_code_at_the_top() -> None:
    response = refuse(build(ApiKey.HEARTBEAT, group_id="g"), 4)
    assert response.error_code == CODE  # type: ignore[attr-defined]


@pytest.mark.parametrize(("code", "message"), [(CODE, "no"), (ErrorCode.NOT_CONTROLLER, "")])
def test_code_and_message_for_every_topic(code: ErrorCode, message: str) -> None:
    response = refuse(build(ApiKey.CREATE_TOPICS, topics=[{"name": "a"}, {"name": "b"}]), 7, code)
    found = [(topic.name, topic.error_code, topic.error_message) for topic in response.topics]  # type: ignore[attr-defined]
    assert found == [("a", code, message), ("b", code, message)]


def test_code_for_every_partition() -> None:
    request = build(
        ApiKey.TXN_OFFSET_COMMIT,
        topics=[{"name": "a", "partitions": [{"partition_index": 3}, {"partition_index": 5}]}],
    )
    (topic,) = refuse(request, 3).topics  # type: ignore[attr-defined]
    assert [(part.partition_index, part.error_code) for part in topic.partitions] == [(3, CODE), (5, CODE)]


@pytest.mark.parametrize("topics", [None, [{"name": "a", "partition_indexes": [3, 5]}]])
def test_partitions_that_are_repeated_have_no_code_of_their_own(topics: list[dict[str, object]] | None) -> None:
    request = build(ApiKey.LIST_PARTITION_REASSIGNMENTS, topics=topics)
    answer = refuse(request, 0)
    assert answer.error_code == CODE  # type: ignore[attr-defined]
    found = [
        (topic.name, [(part.partition_index, part.replicas) for part in topic.partitions])
        for topic in answer.topics  # type: ignore[attr-defined]
    ]
    assert found == ([] if topics is None else [("a", [(3, []), (5, [])])])


def test_code_for_every_partition_of_a_transaction() -> None:
    """The field has another name than in other answers."""
    topics = [{"name": "a", "partitions": [3, 5]}]
    answer = refuse(build(ApiKey.ADD_PARTITIONS_TO_TXN, v3_and_below_topics=topics), 3)
    (topic,) = answer.results_by_topic_v3_and_below  # type: ignore[attr-defined]
    found = [(part.partition_index, part.partition_error_code) for part in topic.results_by_partition]
    assert found == [(3, CODE), (5, CODE)]


def test_code_for_partitions_within_topics_within_markers() -> None:
    request = build(
        ApiKey.WRITE_TXN_MARKERS,
        markers=[{"producer_id": 9, "topics": [{"name": "a", "partition_indexes": [1]}]}],
    )
    (marker,) = refuse(request, 1).markers  # type: ignore[attr-defined]
    (topic,) = marker.topics
    (partition,) = topic.partitions
    assert (marker.producer_id, topic.name, partition.partition_index, partition.error_code) == (9, "a", 1, CODE)


def test_topics_to_delete_by_name_or_by_id() -> None:
    old = refuse(build(ApiKey.DELETE_TOPICS, topic_names=["a"]), 5)
    new = refuse(build(ApiKey.DELETE_TOPICS, topics=[{"name": None, "topic_id": b"i" * 16}]), 6)
    assert [(topic.name, topic.error_code) for topic in old.responses] == [("a", CODE)]  # type: ignore[attr-defined]
    assert [(topic.topic_id, topic.error_code) for topic in new.responses] == [(b"i" * 16, CODE)]  # type: ignore[attr-defined]


def test_as_many_results_as_there_were_acls() -> None:
    response = refuse(build(ApiKey.CREATE_ACLS, creations=[{}, {}, {}]), 3)
    assert [result.error_code for result in response.results] == [CODE] * 3  # type: ignore[attr-defined]


def test_consumer_protocol_is_refused_without_a_message() -> None:
    (group,) = refuse(build(ApiKey.CONSUMER_GROUP_DESCRIBE, group_ids=["g"]), 0).groups  # type: ignore[attr-defined]
    assert (group.group_id, group.error_code, group.error_message) == ("g", CODE, None)


def test_sentinels_of_a_join_that_failed() -> None:
    old, new = (refuse(build(ApiKey.JOIN_GROUP), version) for version in (6, 7))
    assert (old.generation_id, old.protocol_name) == (-1, "")  # type: ignore[attr-defined]
    assert (new.generation_id, new.protocol_name) == (-1, None)  # type: ignore[attr-defined]


def test_coordinators_that_were_not_found() -> None:
    old = refuse(build(ApiKey.FIND_COORDINATOR, key="g"), 3)
    assert (old.error_code, old.node_id, old.host, old.port) == (CODE, -1, "", -1)  # type: ignore[attr-defined]
    (new,) = refuse(build(ApiKey.FIND_COORDINATOR, coordinator_keys=["g"]), 4).coordinators  # type: ignore[attr-defined]
    assert (new.key, new.error_code, new.node_id, new.port) == ("g", CODE, -1, -1)


def test_the_elements_of_a_large_response_are_made_when_they_are_read() -> None:
    asked = [{"resource_type": 2, "resource_name": str(number)} for number in range(FEW + 1)]
    results = refuse(build(ApiKey.DESCRIBE_CONFIGS, resources=asked), 4).results  # type: ignore[attr-defined]
    assert isinstance(results, Mapped)
    assert [result.resource_name for result in results] == list(map(str, range(FEW + 1)))
    assert all(result.error_code == CODE for result in results)


def test_so_are_the_parts_of_an_element() -> None:
    asked = [{"name": "t", "partition_indexes": list(range(FEW + 1))}, {"name": "u", "partition_indexes": [5]}]
    many, one = refuse(build(ApiKey.DESCRIBE_PRODUCERS, topics=asked), 0).topics  # type: ignore[attr-defined]
    assert isinstance(many.partitions, Mapped)
    assert [(part.partition_index, part.error_code) for part in many.partitions] == [(n, CODE) for n in range(FEW + 1)]
    assert [(part.partition_index, part.error_code) for part in one.partitions] == [(5, CODE)]


def test_equal_elements_of_a_large_request_have_one_result() -> None:
    """Where all of them are looked at before they are encoded."""
    deletions = [{"name": "a", "mechanism": 1}] * FEW + [{"name": "b", "mechanism": 1}]
    request = build(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, deletions=deletions)
    assert [result.user for result in refuse(request, 0).results] == ["a", "b"]  # type: ignore[attr-defined]


def test_quota_entries_of_a_large_request_have_their_own_results() -> None:
    entries = [{"entity": [{"entity_type": "user", "entity_name": str(number)}]} for number in range(FEW + 1)]
    found = refuse(build(ApiKey.ALTER_CLIENT_QUOTAS, entries=entries), 1).entries  # type: ignore[attr-defined]
    assert [entry.entity[0].entity_name for entry in found] == list(map(str, range(FEW + 1)))


def test_quota_entities_are_named() -> None:
    request = build(ApiKey.ALTER_CLIENT_QUOTAS, entries=[{"entity": [{"entity_type": "user", "entity_name": "u"}]}])
    (entry,) = refuse(request, 1).entries  # type: ignore[attr-defined]
    (entity,) = entry.entity
    assert (entity.entity_type, entity.entity_name, entry.error_code) == ("user", "u", CODE)


@pytest.mark.parametrize(
    ("code", "message", "names"),
    [(ErrorCode.NOT_CONTROLLER, DEFAULT_MESSAGES[ErrorCode.NOT_CONTROLLER], []), (CODE, "no", ["t"])],
)
def test_a_reassignment_that_only_the_controller_answers_is_named_by_no_other(
    code: ErrorCode, message: str, names: list[str]
) -> None:
    topics = [{"name": "t", "partitions": [{"partition_index": 0}]}]
    response = refuse(build(ApiKey.ALTER_PARTITION_REASSIGNMENTS, topics=topics), 0, code)
    assert (response.error_code, response.error_message) == (code, message)  # type: ignore[attr-defined]
    assert [topic.name for topic in response.responses] == names  # type: ignore[attr-defined]

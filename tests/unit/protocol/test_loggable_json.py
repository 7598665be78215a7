"""Messages as JSON for a log: what is left out, and how large they become."""

from __future__ import annotations

import json

import pytest

from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.codec.schema import Struct
from odradek.protocol.loggable_json import CHARACTERS_MAX, HIDDEN, TEXT_CHARACTERS_MAX, loggable
from odradek.protocol.message_json import json_text, to_json
from odradek.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.wire.requests import build

SECRET = b"a secret of this client"


def shown(message: Struct, version: int, *secret: str) -> str:
    return json_text(loggable(message, version, lambda name: name in secret))


def test_of_records_there_is_the_size() -> None:
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=3, records=memoryview(SECRET))])
    request = ProduceRequest(acks=1, timeout_ms=5, topic_data=[data])
    assert json.loads(shown(request, 9)) == {
        "transactionalId": None,
        "acks": 1,
        "timeoutMs": 5,
        "topicData": [{"name": "t", "partitionData": [{"index": 3, "recordsSizeInBytes": len(SECRET)}]}],
    }
    data.partition_data[0].records = None
    assert json.loads(shown(request, 9))["topicData"][0]["partitionData"] == [{"index": 3, "records": None}]


@pytest.mark.parametrize(
    ("key", "fields"),
    [
        (ApiKey.SASL_AUTHENTICATE, {"auth_bytes": SECRET}),
        (ApiKey.RENEW_DELEGATION_TOKEN, {"hmac": SECRET}),
        (ApiKey.EXPIRE_DELEGATION_TOKEN, {"hmac": SECRET}),
        (
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            {"upsertions": [{"name": "u", "mechanism": 1, "salt": SECRET, "salted_password": SECRET}]},
        ),
        (ApiKey.ENVELOPE, {"request_data": SECRET, "request_principal": SECRET, "client_host_address": b""}),
    ],
)
def test_secrets_are_hidden(key: ApiKey, fields: dict[str, object]) -> None:
    text = shown(build(key, **fields), API[key].max_version)
    assert HIDDEN in text
    assert "YSBzZWNyZXQ" not in text


def test_elements_that_are_made_when_they_are_read_are_shown() -> None:
    results = Mapped(lambda name: DeletableGroupResult(group_id=name), ["a", "b"])
    assert json.loads(shown(DeleteGroupsResponse(results=results), 2))["results"] == [
        {"groupId": "a", "errorCode": 0},
        {"groupId": "b", "errorCode": 0},
    ]


@pytest.mark.parametrize("key", [ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS])
def test_values_of_secret_configs_are_hidden(key: ApiKey) -> None:
    configs = [{"name": "ssl.key.password", "value": "open sesame"}, {"name": "num.io.threads", "value": "9"}]
    request = build(key, resources=[{"resource_type": 4, "resource_name": "0", "configs": configs}])
    text = shown(request, 1, "ssl.key.password")
    assert "open sesame" not in text
    assert [config["value"] for config in json.loads(text)["resources"][0]["configs"]] == [HIDDEN, "9"]


def test_small_messages_are_those_of_kafkas_tools() -> None:
    request = build(ApiKey.METADATA, topics=[{"name": "a"}, {"name": None}], allow_auto_topic_creation=True)
    assert loggable(request, 12, lambda name: False) == to_json(request, 12)
    joined = build(
        ApiKey.JOIN_GROUP, group_id="g", session_timeout_ms=1, protocols=[{"name": "range", "metadata": b"\0\1"}]
    )
    assert loggable(joined, 9, lambda name: False) == to_json(joined, 9)


def test_size_is_bounded() -> None:
    many = build(ApiKey.METADATA, topics=[{"name": f"topic {number}"} for number in range(100_000)])
    text = shown(many, 9)
    assert len(text) < 2 * CHARACTERS_MAX
    topics = json.loads(text)["topics"]
    assert topics[-1] == f"{100_000 - len(topics) + 1} more"
    nested = build(
        ApiKey.FETCH,
        topics=[
            {"topic": f"t{number}", "partitions": [{"partition": p} for p in range(10)]} for number in range(1_000)
        ],
    )
    assert len(shown(nested, 11)) < 2 * CHARACTERS_MAX
    wide = build(ApiKey.FIND_COORDINATOR, coordinator_keys=["x" * 50_000] * 10)
    assert len(shown(wide, 4)) < 2 * CHARACTERS_MAX
    assert len(json.loads(shown(wide, 4))["coordinatorKeys"][0]) == TEXT_CHARACTERS_MAX + 3

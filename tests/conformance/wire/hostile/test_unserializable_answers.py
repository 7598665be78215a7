"""An answer that quotes a text of the request, with some words around it, may be longer than a text can be."""

from __future__ import annotations

from typing import Any, cast

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.limits import MAX_STRING_BYTES
from odradek.protocol.codec.schema import Message, Request
from odradek.protocol.errors import ErrorCode
from tests.conformance.conftest import Broker
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

TOPIC, BROKER = 2, 4
DIGITS = "1" * (MAX_STRING_BYTES - 1) + "x"
KEY = "retention.ms"
LONG = {"name": KEY, "value": DIGITS}


def altered(*resources: tuple[int, str, dict[str, str]]) -> Request:
    return build(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        resources=[
            {"resource_type": kind, "resource_name": name, "configs": [{**config, "config_operation": 0}]}
            for kind, name, config in resources
        ],
    )


def replaced(kind: int, name: str, config: dict[str, str]) -> Request:
    resource = {"resource_type": kind, "resource_name": name, "configs": [config]}
    return build(ApiKey.ALTER_CONFIGS, resources=[resource], validate_only=False)


def described(kind: int) -> Request:
    resource = {"resource_type": kind, "resource_name": DIGITS, "configuration_keys": None}
    return build(ApiKey.DESCRIBE_CONFIGS, resources=[resource])


def quota(kind: str, key: str) -> Request:
    entry = {
        "entity": [{"entity_type": kind, "entity_name": "u"}],
        "ops": [{"key": key, "value": 1.0, "remove": False}],
    }
    return build(ApiKey.ALTER_CLIENT_QUOTAS, entries=[entry], validate_only=True)


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (altered((BROKER, "", {**LONG, "name": "log.retention.ms"})), 0),
        (altered((BROKER, "", {**LONG, "name": "log.retention.ms"})), 1),
        (altered((TOPIC, "long", LONG)), 1),
        (altered((TOPIC, "long", {"name": KEY, "value": "60000"}), (TOPIC, "other", LONG)), 1),
        (altered((BROKER, DIGITS, {"name": "log.retention.ms", "value": "1"})), 1),
        (replaced(BROKER, "", {**LONG, "name": "log.retention.ms"}), 1),
        (replaced(TOPIC, DIGITS, {"name": KEY, "value": "1"}), 2),
        (described(TOPIC), 1),
        (described(BROKER), 4),
        (quota("user", DIGITS), 1),
        (quota(DIGITS, "producer_byte_rate"), 0),
        (
            build(
                ApiKey.CREATE_PARTITIONS,
                topics=[{"name": DIGITS, "count": 3, "assignments": None}],
                timeout_ms=10_000,
                validate_only=False,
            ),
            3,
        ),
    ],
)
def test_it_becomes_an_unknown_error_of_all_that_was_asked(broker: Broker, request_: Request, version: int) -> None:
    with RawClient(broker.host, broker.port, timeout_s=60) as client:
        for topic in ("long", "other"):
            topics = [{"name": topic, "num_partitions": 1, "replication_factor": 1}]
            client.call(build(ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=30_000), 5)
        answer = client.call(request_, version)
        client.call(build(ApiKey.API_VERSIONS), 0)  # the connection is open
    found = list_of(answer, "responses", "results", "entries")
    assert len(found) == len(list_of(request_, "resources", "entries", "topics"))
    for one in found:
        assert one.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert DIGITS not in (one.error_message or "")


def list_of(message: Message, *names: str) -> list[Any]:
    """The field that the message has of these."""
    [found] = [getattr(message, name) for name in names if hasattr(message, name)]
    return cast("list[Any]", found)

"""FindCoordinator: key types, one key and many, and the topic that the request creates."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorResponse
from tests.support.in_process.in_process_broker import FakeConnection, InProcessBroker, in_process_broker
from tests.support.wire.requests import build

NONE = ErrorCode.NONE
GROUP, TRANSACTION, SHARE = 0, 1, 2
OFFSETS = "__consumer_offsets"


def find(
    broker: InProcessBroker, *keys: str, version: int = 6, key_type: int = GROUP
) -> list[tuple[str, int, int, str, int, str | None]]:
    """(key, error, node, host, port, message) of each key."""
    asked: dict[str, object] = {"key": keys[0]} if version < 4 else {"coordinator_keys": list(keys)}
    response = broker.call(build(ApiKey.FIND_COORDINATOR, key_type=key_type, **asked), version)
    assert isinstance(response, FindCoordinatorResponse)
    if version < 4:
        found = response
        return [(keys[0], found.error_code, found.node_id, found.host, found.port, found.error_message)]
    return [(c.key, c.error_code, c.node_id, c.host, c.port, c.error_message) for c in response.coordinators]


@pytest.fixture(autouse=True)
def offsets_topic(broker: InProcessBroker) -> None:
    if not broker.services.metadata_cache.contains(OFFSETS):
        find(broker, "g")
        assert broker.settle(lambda: broker.services.metadata_cache.contains(OFFSETS))


@pytest.mark.parametrize("version", range(7))
def test_coordinator_of_a_group(broker: InProcessBroker, version: int) -> None:
    message = "" if version == 0 or version >= 4 else "NONE"
    expected = ("g", NONE, 0, FakeConnection.local_host, FakeConnection.local_port, message)
    assert find(broker, "g", version=version) == [expected]


def test_many_groups_at_once(broker: InProcessBroker) -> None:
    assert [(found[0], found[1]) for found in find(broker, "a", "b", "a")] == [("a", NONE), ("b", NONE), ("a", NONE)]
    assert find(broker) == []


@pytest.mark.parametrize("version", [1, 5, 6])
def test_share_groups_have_no_coordinator(broker: InProcessBroker, version: int) -> None:
    ((_, error, node, host, port, _),) = find(broker, "g", version=version, key_type=SHARE)
    expected = ErrorCode.COORDINATOR_NOT_AVAILABLE if version >= 6 else ErrorCode.INVALID_REQUEST
    assert (error, node, host, port) == (expected, -1, "", -1)


@pytest.mark.parametrize("version", [1, 6])
def test_unknown_key_type(broker: InProcessBroker, version: int) -> None:
    ((key, error, node, host, port, message),) = find(broker, "g", version=version, key_type=9)
    assert (key, error, node, host, port) == ("g", ErrorCode.INVALID_REQUEST, -1, "", -1)
    assert message == DEFAULT_MESSAGES[ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize(("version", "message"), [(3, DEFAULT_MESSAGES[ErrorCode.COORDINATOR_NOT_AVAILABLE]), (4, "")])
def test_first_to_ask_comes_again(tmp_path: Path, version: int, message: str) -> None:
    with in_process_broker(tmp_path) as broker:
        missing = ("g", ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1, message)
        assert find(broker, "g", version=version) == [missing]
        assert broker.settle(lambda: broker.services.metadata_cache.contains(OFFSETS))
        assert len(broker.services.metadata_cache.snapshot.partitions[OFFSETS]) == 2
        assert find(broker, "g", version=version)[0][1] == NONE

"""AlterConfigs and IncrementalAlterConfigs of a client that may alter topics, and nothing of the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.controller.znodes import znodes
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker
from tests.support.wire.requests import build

TOPIC, BROKER, CLIENT_METRICS = 2, 4, 16
SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
OF_ANOTHER = AclCreation(
    resource_type=4, resource_name="kafka-cluster", principal="User:another", host="*", operation=2, permission_type=3
)
"""The first ACL of the cluster. Only its principal may do anything with it from then on."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    with in_process_broker(tmp_path, SETTINGS) as made:
        made.create_topic("t")
        made.call(CreateAclsRequest(creations=[OF_ANOTHER]), 3)
        yield made


@pytest.mark.parametrize(("api_key", "version"), [(ApiKey.ALTER_CONFIGS, 2), (ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)])
@pytest.mark.parametrize("has_metrics", [False, True])
def test_client_metrics_refuse_the_whole_request_when_the_rest_is_altered(
    broker: InProcessBroker, api_key: ApiKey, version: int, has_metrics: bool
) -> None:
    named = [
        (BROKER, "0", "log.cleaner.threads", "1"),
        *([(CLIENT_METRICS, name, "interval.ms", "1000") for name in "mn"] if has_metrics else ()),
        (TOPIC, "t", "retention.ms", "1000000"),
    ]
    resources = [
        {"resource_type": kind, "resource_name": name, "configs": [{"name": key, "value": value}]}
        for kind, name, key, value in named
    ]
    answer = broker.call(build(api_key, resources=resources), version)
    errors = [(one.error_code, one.error_message) for one in answer.responses]  # type: ignore[attr-defined]
    if has_metrics:
        message = "Unexpected resource type CLIENT_METRICS for resource m"
        assert errors == [(ErrorCode.INVALID_REQUEST, message)] * 4
    else:
        assert errors == [(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None), (ErrorCode.NONE, None)]
    assert broker.run(broker.services.controller.client.entity_config("topics/t")) == {"retention.ms": "1000000"}
    assert not broker.run(broker.services.controller.client.exists(znodes.entity_config_path("brokers/0")))

"""A broker that compacts nothing refuses the same dynamic configs as any other."""

from __future__ import annotations

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_configs import AlterConfigsResponse
from tests.conformance.conftest import NewBroker
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

BROKER = 4


@pytest.mark.parametrize("name", ["0", ""])
def test_threads_cannot_become_much_fewer(new_broker: NewBroker, name: str) -> None:
    broker = new_broker(**{"log.cleaner.enable": "false"})
    configs = [{"name": "num.io.threads", "value": "2"}]
    resource = {"resource_type": BROKER, "resource_name": name, "configs": configs}
    with RawClient(broker.host, broker.port) as client:
        answer = client.call(build(ApiKey.ALTER_CONFIGS, resources=[resource], validate_only=True), 1)
    assert isinstance(answer, AlterConfigsResponse)
    [response] = answer.responses
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert "value should be at least half the current value 8" in (response.error_message or "")

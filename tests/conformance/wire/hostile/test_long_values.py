"""Values of configs as long as a string can be: an expression that tries again and again would need many seconds."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.limits import MAX_STRING_BYTES
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

PROCESSOR_S = 0.5
"""Of the broker for one request; 5 ms are usual."""
PROVIDERS = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}
LENGTH = MAX_STRING_BYTES - 500
"""The error quotes the value, and has to fit in a string, too."""
DIGITS = "1" * (LENGTH - 1) + "x"
BLANKS = "compact" + " " * (LENGTH - 8) + "x"
VARIABLES = "${file:" * (LENGTH // 7)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekBroker]:
    with running(OdradekBroker(tmp_path_factory.mktemp("long"), PROVIDERS)) as process:
        yield process


def topic(name: str, value: str) -> Request:
    configs = [{"name": name, "value": value}]
    topics = [{"name": "t", "num_partitions": 1, "replication_factor": 1, "configs": configs}]
    return build(ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=30_000)


def changed(kind: int, resource: str, name: str, value: str) -> Request:
    configs = [{"name": name, "config_operation": 0, "value": value}]
    resources = [{"resource_type": kind, "resource_name": resource, "configs": configs}]
    return build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=resources)


@pytest.mark.parametrize(
    ("request_", "version", "error"),
    [
        (topic("min.cleanable.dirty.ratio", DIGITS), 7, ErrorCode.INVALID_CONFIG),
        (topic("retention.ms", DIGITS), 7, ErrorCode.INVALID_CONFIG),
        (topic("cleanup.policy", BLANKS), 7, ErrorCode.INVALID_CONFIG),
        (changed(4, "", "log.cleaner.min.cleanable.ratio", DIGITS), 1, ErrorCode.INVALID_REQUEST),
        (changed(4, "", "max.connections.per.ip.overrides", BLANKS), 1, ErrorCode.INVALID_REQUEST),
        (changed(4, "", "log.cleanup.policy", VARIABLES), 1, ErrorCode.INVALID_REQUEST),
        (changed(4, DIGITS, "log.retention.ms", "1"), 1, ErrorCode.INVALID_REQUEST),
    ],
    ids=["DOUBLE", "LONG", "LIST", "of all brokers", "a map", "variables", "the name of a broker"],
)
def test_a_long_value_is_refused_at_once(
    broker: OdradekBroker, request_: Request, version: int, error: ErrorCode
) -> None:
    process = psutil.Process(broker.pid)
    with RawClient(broker.host, broker.port, timeout_s=60) as client:
        before = process.cpu_times()
        answer = client.call(request_, version)
        after = process.cpu_times()
    (one,) = getattr(answer, "topics", None) or answer.responses  # type: ignore[attr-defined]
    assert one.error_code == error
    assert after.user - before.user < PROCESSOR_S

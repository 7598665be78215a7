"""What Apache Kafka's audit log says at DEBUG: also what is allowed, and by which ACL.

No ACL is for all operations: of those that imply the one that was asked, Apache Kafka names any then.
"""

from __future__ import annotations

import re
from typing import Final

import pytest

from odradek.controller.model.acls import AclOperation
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from tests.support.transcripts.rights import CLIENT, cluster, group, topic
from tests.support.transcripts.secured import SecuredTranscript
from tests.support.wire.requests import batch, build

pytestmark = pytest.mark.oracle

Op = AclOperation
BROKER_LOGGER: Final = 8
LOGGER: Final = "kafka.authorizer.logger"
LINE: Final = re.compile(rf"^\[[^]]*\] (\w+ .* host = {re.escape(CLIENT)} .*) \({re.escape(LOGGER)}\)$", re.MULTILINE)


def set_level(t: SecuredTranscript, level: str) -> None:
    resource = {"resource_type": BROKER_LOGGER, "resource_name": "0", "configs": [{"name": LOGGER, "value": level}]}
    [response] = t.quietly(build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource]), 1).responses  # type: ignore[attr-defined]
    assert response.error_code == 0, response


def test_the_log_of_what_is_allowed(secured: SecuredTranscript) -> None:
    t = secured
    seen, mine = t.create("seen"), t.name("mine")
    data = [{"name": seen, "partition_data": [{"index": 0, "records": batch(b"v")}]}]
    requests: dict[str, tuple[Request, int]] = {
        "metadata": (build(ApiKey.METADATA, topics=[{"name": seen}], include_topic_authorized_operations=True), 8),
        "all topics": (build(ApiKey.METADATA, topics=None), 8),
        "produce": (build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data), 9),
        "heartbeat": (build(ApiKey.HEARTBEAT, group_id=mine, generation_id=1, member_id="m"), 4),
        "ids": (build(ApiKey.INIT_PRODUCER_ID, transactional_id=None, transaction_timeout_ms=1), 4),
        "quotas": (build(ApiKey.DESCRIBE_CLIENT_QUOTAS, components=[], strict=False), 1),
    }

    def ask(label: str) -> None:
        for name, (request, version) in requests.items():
            logged = t.broker.log_bytes
            t.client.call(request, version)
            lines = LINE.findall(t.broker.log_text(logged))
            t.note(f"{name}: {label}", [*sorted(t.without_other_tests(lines))])

    set_level(t, "DEBUG")
    try:
        t.with_rights(
            {
                "nothing": (),
                "write": [topic(Op.WRITE, seen), group(Op.READ, mine)],
                "read all": [topic(Op.READ, "*"), cluster(Op.DESCRIBE_CONFIGS), cluster(Op.IDEMPOTENT_WRITE)],
            },
            ask,
        )
    finally:
        set_level(t, "INFO")

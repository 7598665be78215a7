"""DescribeUserScramCredentials of a client without the right; transcripts compare the rest with Apache Kafka's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from tests.support.in_process.in_process_broker import in_process_broker

SETTINGS = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}


def test_who_asks_for_all_users_without_the_right_is_answered(tmp_path: Path) -> None:
    with in_process_broker(tmp_path, SETTINGS) as broker:
        answer: Any = broker.call(DescribeUserScramCredentialsRequest(users=None), 0)
    assert (answer.error_code, answer.results) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])

"""Tests of the other transcripts, with each of their clients authenticated over SASL_SSL: the answers are the same."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.broker.security.sasl.plain import PlainSaslClient
from odradek.protocol.errors import ErrorCode
from tests.conformance.conftest import GOLDEN
from tests.conformance.transcripts.authorization.test_transcripts_acls import (
    test_acls_in_all_versions,
    test_patterns_and_filters,
    test_what_is_refused,
)
from tests.conformance.transcripts.configs.test_transcripts_configs import (
    test_alter_configs,
    test_describe_a_topic,
    test_incremental_alter_configs,
)
from tests.conformance.transcripts.test_transcripts_admin import (
    test_client_quotas,
    test_client_quotas_of_addresses_and_defaults,
    test_scram_users,
)
from tests.conformance.transcripts.test_transcripts_fetch import (
    test_delete_records,
    test_fetch_every_version,
    test_fetch_sessions,
    test_list_offsets,
)
from tests.conformance.transcripts.test_transcripts_groups import (
    test_group_administration,
    test_one_member_in_every_version,
    test_static_members,
    test_two_members,
)
from tests.conformance.transcripts.test_transcripts_produce import (
    test_acks,
    test_every_version,
    test_idempotence,
    test_records_that_are_wrong,
)
from tests.conformance.transcripts.test_transcripts_topics import (
    test_api_versions,
    test_create_partitions,
    test_create_topics,
    test_delete_topics,
    test_describe_cluster,
    test_find_coordinator,
    test_metadata,
)
from tests.conformance.transcripts.test_transcripts_transactions import (
    test_describe_and_list,
    test_end,
    test_fencing,
    test_init_producer_id,
    test_records,
)
from tests.support.broker import Broker
from tests.support.certificates import Authority
from tests.support.processes.ports import free_port
from tests.support.transcripts.secured import ACL_AUTHORIZER
from tests.support.transcripts.transcript import Transcript
from tests.support.wire.raw_client import RawClient
from tests.support.wire.sasl_client import log_in

__all__ = [
    "test_acks",
    "test_acls_in_all_versions",
    "test_alter_configs",
    "test_api_versions",
    "test_client_quotas",
    "test_client_quotas_of_addresses_and_defaults",
    "test_create_partitions",
    "test_create_topics",
    "test_delete_records",
    "test_delete_topics",
    "test_describe_a_topic",
    "test_describe_and_list",
    "test_describe_cluster",
    "test_end",
    "test_every_version",
    "test_fencing",
    "test_fetch_every_version",
    "test_fetch_sessions",
    "test_find_coordinator",
    "test_group_administration",
    "test_idempotence",
    "test_incremental_alter_configs",
    "test_init_producer_id",
    "test_list_offsets",
    "test_metadata",
    "test_one_member_in_every_version",
    "test_patterns_and_filters",
    "test_records",
    "test_records_that_are_wrong",
    "test_scram_users",
    "test_static_members",
    "test_two_members",
    "test_what_is_refused",
]

pytestmark = pytest.mark.oracle

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'


class Secured(NamedTuple):
    """A broker, and its SASL_SSL listener."""

    broker: Broker
    port: int
    context: ssl.SSLContext


class AuthenticatedTranscript(Transcript):
    """Each connection authenticates with PLAIN over TLS."""

    def __init__(self, secured: Secured, unique: Callable[[str], str], golden: Path) -> None:
        super().__init__(secured.broker, unique, golden)
        self._secured = secured

    def connect(self, client_id: str = "raw") -> RawClient:
        client = RawClient(self.broker.host, self._secured.port, client_id, tls=self._secured.context)
        assert log_in(client, "PLAIN", PlainSaslClient("alice", "secret")).error_code == ErrorCode.NONE
        return client


@pytest.fixture(scope="module")
def secured(make_broker: Callable[..., Broker], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory, authority = tmp_path_factory.mktemp("over-sasl-ssl"), Authority()
    trust_store = authority.write_pem(directory / "ca.pem")
    port, sasl_port = free_port(), free_port()
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{sasl_port}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("broker").write_pem(directory / "broker.pem")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trust_store),
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": JAAS,
        "authorizer.class.name": ACL_AUTHORIZER,
        "super.users": "User:ANONYMOUS;User:alice",
    }
    process = make_broker(directory / "broker", settings)
    process.port = port  # type: ignore[misc]
    process.start()
    yield Secured(process, sasl_port, ssl.create_default_context(cafile=str(trust_store)))
    process.stop()


@pytest.fixture
def transcript(secured: Secured, unique: Callable[[str], str], request: pytest.FixtureRequest) -> Iterator[Transcript]:
    """Compares with the golden file of the test that is repeated."""
    folder = request.function.__module__.rpartition("test_transcripts_")[2]
    golden = GOLDEN / folder / f"{request.node.name.removeprefix('test_')}.json"
    written = AuthenticatedTranscript(secured, unique, golden)
    yield written.with_internal_topics()
    written.finish(record=False)

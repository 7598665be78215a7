"""A transcript of a client whose rights change, against a broker with an AclAuthorizer in a ZooKeeper."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from kazoo.client import KazooClient

from odradek.controller.model.acls import WILDCARD, AclPermissionType, PatternType
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request, Response
from tests.support.broker import Broker
from tests.support.transcripts.rights import ADMINISTRATOR, CLIENT, Right
from tests.support.transcripts.transcript import Plain, Transcript
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

UNKNOWN_ID = bytes(15) + b"\x07"
"""An id that no topic has."""

REQUEST_TEXT = re.compile(r"Request (?:Request\(.*envelope=None\)|\w+ of \S+ from \S+) is not authorized\.")
"""Apache Kafka's message has Java's text of the request with the addresses of its parts in memory."""

OF_ANOTHER_TEST = re.compile(r"-[0-9a-f]{6}-\d+\b")
"""What `unique` puts behind a name: a list is about all topics and transactions of the broker, those of earlier tests
among them.
"""

WITHOUT_ORDER = {
    "TopicProduceResponse",
    "OffsetFetchResponseTopic",
    "OffsetFetchResponseTopics",
    "AddPartitionsToTxnTopicResult",
    "TopicData",
    "DescribedDelegationToken",
}
"""Topics and tokens that come in the order of a hash map."""

ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"


def write_entries(zookeeper_connect: str, rights: Mapping[str, Iterable[Right]]) -> None:
    """Write what each address may do into an empty ZooKeeper, before the first broker starts."""
    address, _, chroot = zookeeper_connect.partition("/")
    entries: dict[str, list[dict[str, str]]] = {}
    for host, allowed in rights.items():
        for operation, resource_type, name in allowed:
            kind = _camel_case(resource_type.name)
            entry = {"permissionType": "Allow", "operation": _camel_case(operation.name), "host": host}
            entries.setdefault(f"{kind}/{name}", []).append({"principal": "User:ANONYMOUS", **entry})
    client = KazooClient(hosts=address)
    client.start()
    try:
        for resource, acls in entries.items():
            data = json.dumps({"version": 1, "acls": acls}).encode()
            client.create(f"/{chroot}/kafka-acl/{resource}", data, makepath=True)
    finally:
        client.stop()
        client.close()


def _camel_case(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


class SecuredTranscript(Transcript):
    """`allow` sets the rights of the client; `admin` may do everything.

    Each answer to the client is followed by the lines of the audit log with what it was denied: they tell what the
    broker has asked the authorizer.
    """

    client_principal, client_host = "User:ANONYMOUS", CLIENT

    def __init__(self, broker: Broker, unique: Callable[[str], str], golden: Path) -> None:
        super().__init__(broker, unique, golden)
        self.admin = RawClient(broker.host, broker.port, source_host=ADMINISTRATOR)

    @property
    def client(self) -> RawClient:
        if self._client is None:
            self._client = RawClient(self.broker.host, self.broker.port, source_host=CLIENT)
        return self._client

    def quietly(self, request: Request, version: int) -> Response:
        """Send a request of the administrator."""
        return self.admin.call(request, version)

    def allow(self, *rights: Right) -> None:
        """The client may do this and nothing else."""
        removed = {
            "resource_type_filter": 1,
            "resource_name_filter": None,
            "pattern_type_filter": 1,
            "principal_filter": self.client_principal,
            "host_filter": self.client_host,
            "operation": 1,
            "permission_type": 1,
        }
        self.quietly(build(ApiKey.DELETE_ACLS, filters=[removed]), 2)
        created = [
            {
                "resource_type": right.resource_type,
                "resource_name": right.name,
                "resource_pattern_type": PatternType.LITERAL,
                "principal": self.client_principal,
                "host": self.client_host,
                "operation": right.operation,
                "permission_type": AclPermissionType.ALLOW,
            }
            for right in rights
        ]
        answer = self.quietly(build(ApiKey.CREATE_ACLS, creations=created), 2)
        assert all(result.error_code == 0 for result in answer.results), answer  # type: ignore[attr-defined]

    def call(self, label: str, request: Request, version: int) -> Response | None:
        logged = self.broker.log_bytes
        response = super().call(label, request, version)
        # Those of several topics come in the order of a hash map.
        self.note(f"denied: {label}", [*sorted(self.without_other_tests(self._denials(logged)))])
        return response

    def _denials(self, logged: int) -> list[str]:
        """Lines about the client behind so many bytes of the log."""
        host = r"\S+" if self.client_host == WILDCARD else re.escape(self.client_host)
        principal = re.escape(self.client_principal)
        line = rf"Principal = {principal} is Denied .* from host = {host} on .* resourceRefCount = \d+"
        return re.findall(line, self.broker.log_text(logged))

    def without_other_tests(self, lines: Iterable[str]) -> list[str]:
        """Lines of a log as they are in the transcript, but those with names of other tests."""
        return [text for line in lines if not OF_ANOTHER_TEST.search(text := self._text(line))]

    def create(self, stem: str) -> str:
        """A topic that the administrator has created."""
        name = self.name(stem)
        new = {"name": name, "num_partitions": 1, "replication_factor": 1}
        answer = self.quietly(build(ApiKey.CREATE_TOPICS, topics=[new], timeout_ms=10_000), 5)
        assert answer.topics[0].error_code == 0, answer  # type: ignore[attr-defined]
        return name

    def topic_id(self, name: str) -> bytes:
        answer = self.quietly(build(ApiKey.METADATA, topics=[{"name": name}]), 12)
        return answer.topics[0].topic_id  # type: ignore[attr-defined, no-any-return]

    def stem(self, name: str) -> str:
        """The name as it is in the transcript."""
        return self._names.get(name, name)

    def with_rights(self, variants: dict[str, Sequence[Right]], ask: Callable[[str], None]) -> None:
        """Calls `ask` with the name of each variant, while the client has its rights."""
        for label, rights in variants.items():
            self.allow(*rights)
            ask(label)

    def _plain_value(self, value: object, version: int) -> Plain:
        if isinstance(value, list) and value and type(value[0]).__name__ in WITHOUT_ORDER:
            return sorted(super()._plain_value(value, version), key=str)  # type: ignore[arg-type]
        return super()._plain_value(value, version)

    def _text(self, text: str) -> str:
        return super()._text(REQUEST_TEXT.sub("Request <request> is not authorized.", text))

    def finish(self, *, record: bool) -> None:
        self.admin.close()
        super().finish(record=record)

"""Transcripts: requests with the answers of Apache Kafka, which are recorded once and compared in every run.

A test writes down requests; `Transcript` sends them, writes the answers as plain JSON with everything that differs from
run to run replaced by a name (topics, members, ids, addresses, times), and compares with the golden file of the test.
`pytest tests/conformance --target apache --record` writes those files; without `--record` Apache Kafka's answers are
compared with them too, so that an answer which is not stable is found.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.codec.schema import Kind, Request, Response, Struct
from tests.support.broker import Broker
from tests.support.waiting import eventually
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import build

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]

CLOSED = "connection closed"
NO_ANSWER = "no answer"
UNKNOWN_SERVER_ERROR = -1
NOT_READY = (14, 15, 16, 51)
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS: come again."""
UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
NOW_TEXT = re.compile(r"-?\b(?!16000000)\d{13,}\b")  # a time of today, or one computed from it
SCALA_TEXT = re.compile(
    r"\b(?:ArrayBuffer|(?:Hash)?(?:Set|Map)|List|Vector)\(([^()]*)\)"
)  # a collection in an error message
RECORDS_HEAD = struct.Struct(">qi")
# Fields that say where, when and under which random id; their presence is compared, their value is not.
VOLATILE = {
    "port": "<port>",
    "cluster_id": "<cluster>",
    "session_id": "<session>",
    "producer_id": "<producer>",
    "log_append_time_ms": "<time>",
    "usable_bytes": "<bytes>",
    "total_bytes": "<bytes>",
    "broker_epoch": "<epoch>",
    "last_timestamp": "<time>",
    "transaction_start_time_ms": "<time>",
    "documentation": "<text>",  # the documentation of a config is in our own words
}


class Transcript:
    """The requests of one test and their answers, in order. Labels are unique within a transcript."""

    def __init__(self, broker: Broker, unique: Callable[[str], str], golden: Path) -> None:
        self.broker = broker
        self._unique = unique
        self._golden = golden
        self._names: dict[str, str] = {}
        self._members: dict[str, str] = {}
        self._client: RawClient | None = None
        self._others: list[RawClient] = []
        self.answers: dict[str, Plain] = {}

    @property
    def client(self) -> RawClient:
        """The connection in use; a new one after the broker closed the last."""
        if self._client is None:
            self._client = self.connect()
        return self._client

    def connect(self, client_id: str = "raw") -> RawClient:
        return RawClient(self.broker.host, self.broker.port, client_id)

    def name(self, stem: str) -> str:
        """A topic or group name that is new in this run and appears as `<stem>` in the transcript."""
        name = self._unique(stem)
        self._names[name] = f"<{stem}>"
        return name

    def hide(self, value: str, name: str) -> str:
        """Write `value` as `<name>` from now on."""
        self._names[value] = f"<{name}>"
        return value

    def call(self, label: str, request: Request, version: int) -> Response | None:
        """Send, note the answer under `label`, and return it; None when the connection was closed instead."""
        try:
            response = self.client.call(request, version)
        except ConnectionClosedError:
            self.disconnect()
            self.note(label, CLOSED)
            return None
        except TimeoutError:
            self.disconnect()
            self.note(label, NO_ANSWER)
            return None
        self.note(label, self.plain(response, version))
        return response

    def sweep(self, label: str, versions: Iterable[int], request: Callable[[int], Request]) -> None:
        """The same request in each of `versions`."""
        for version in versions:
            self.call(f"{label} v{version}", request(version), version)

    def quietly(self, request: Request, version: int) -> Response:
        """Send a request whose answer is no part of the transcript."""
        return self.client.call(request, version)

    def until_accepted(self, request: Request, version: int) -> Response:
        """Send a request until its answer is not one of `NOT_READY`: some things are set up on first use."""
        return eventually(
            lambda: self.quietly(request, version),
            accept=lambda answer: getattr(answer, "error_code", 0) not in NOT_READY,
        )

    def with_internal_topics(self) -> Self:
        """Make sure that the internal topics exist, whatever tests ran before."""
        self.until_accepted(build(ApiKey.FIND_COORDINATOR, key="any", key_type=0), 2)
        self.until_accepted(build(ApiKey.FIND_COORDINATOR, key="any", key_type=1), 2)
        return self

    def member(self, client_id: str = "raw") -> RawClient:
        """A connection of its own, for requests that wait while others go on."""
        connection = self.connect(client_id)
        self._others.append(connection)
        return connection

    def receive(self, label: str, connection: RawClient, api_key: int, version: int) -> Response:
        """Note the answer to the last request of `connection`."""
        response = connection.receive(api_key, version)
        self.note(label, self.plain(response, version))
        return response

    def note(self, label: str, answer: Plain) -> None:
        assert label not in self.answers, f"two answers called {label!r}"
        self.answers[label] = answer

    def disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def finish(self, *, record: bool) -> None:
        """Compare with the golden file, or write it."""
        for connection in self._others:
            connection.close()
        self.disconnect()
        if record:
            self._golden.parent.mkdir(parents=True, exist_ok=True)
            lines = (f"{json.dumps(label)}: {json.dumps(answer)}" for label, answer in self.answers.items())
            self._golden.write_text("{\n" + ",\n".join(lines) + "\n}\n")
            return
        expected: dict[str, Plain] = json.loads(self._golden.read_text())
        missing, extra = expected.keys() - self.answers.keys(), self.answers.keys() - expected.keys()
        assert not missing | extra, (
            f"in the golden file alone: {sorted(missing)}; in the answers alone: {sorted(extra)}"
        )
        differences = [
            "\n".join([label, *(f"    {line}" for line in found)])
            for label, answer in self.answers.items()
            if (found := differences_of(expected[label], answer))
        ]
        assert not differences, f"{len(differences)} of {len(expected)} answers differ (Apache != ours):\n" + "\n".join(
            differences
        )

    def plain(self, message: Struct, version: int) -> dict[str, Plain]:
        """The fields that exist in `version`, shortened for readers of the golden file."""
        result: dict[str, Plain] = {}
        for field in message.FIELDS:
            if not field.versions.covers(version) and not field.tagged.covers(version):
                continue
            value = getattr(message, field.name)
            if field.name in VOLATILE and value not in ((None, -1) if field.name == "producer_id" else (None, -1, 0)):
                result[field.name] = VOLATILE[field.name]
            elif field.kind is Kind.UUID:
                result[field.name] = None if value == ZERO_UUID else "<uuid>"
            elif field.kind is Kind.RECORDS and value is not None:
                result[field.name] = self.plain_records(without_filler(bytes(value)))
            else:
                result[field.name] = self._plain_value(value, version)
        return result

    def plain_records(self, records: bytes) -> Plain:
        return records.hex()

    def _plain_value(self, value: object, version: int) -> Plain:
        match value:
            case Struct():
                return self.plain(value, version)
            case list():
                return [self._plain_value(item, version) for item in _ordered(value)]
            case bytes() | bytearray() | memoryview():
                return "<uuid>" if isinstance(value, bytes) and len(value) == 16 else bytes(value).hex()
            case str():
                return self._text(value)
            case None | bool() | int() | float():
                return value
        raise TypeError(f"a field of type {type(value)}")

    def _text(self, text: str) -> str:
        for value, name in sorted(self._names.items(), key=lambda item: -len(item[0])):
            text = text.replace(value, name)
        text = text.replace(self.broker.bootstrap, "<address>").replace(str(self.broker.log_dir), "<log dir>")
        text = NOW_TEXT.sub("<time>", text)
        text = SCALA_TEXT.sub(r"[\1]", SCALA_TEXT.sub(r"[\1]", text))  # they are nested once at most
        return UUID_TEXT.sub(lambda found: self._members.setdefault(found[0], f"<id {len(self._members) + 1}>"), text)


def without_filler(records: bytes) -> bytes:
    """Records without the message of offset -1 with which Apache fills up an answer that conversion made shorter."""
    position = 0
    while position + RECORDS_HEAD.size <= len(records):
        offset, size = RECORDS_HEAD.unpack_from(records, position)
        if offset < 0:
            return records[:position]
        position += RECORDS_HEAD.size + max(size, 0)
    return records


PARTITIONS_WITHOUT_ORDER = {"AddPartitionsToTxnPartitionResult", "WritableTxnMarkerPartitionResult"}


def _ordered(items: list[object]) -> list[object]:
    """Sorts lists that come in the order of a hash map: members, configs, the partitions of some answers."""
    if items and type(items[0]).__name__ in PARTITIONS_WITHOUT_ORDER:
        return sorted(items, key=lambda partition: partition.partition_index)
    if items and hasattr(items[0], "member_id"):
        return sorted(items, key=_member_order)
    if items and hasattr(items[0], "config_source"):
        return sorted(items, key=lambda config: config.name)
    if items and hasattr(items[0], "isr_nodes"):
        return sorted(items, key=lambda partition: partition.partition_index)
    return items


def _member_order(member: Struct) -> tuple[bytes, str]:
    """Members come in the order of a hash map; in a transcript by what they told of themselves."""
    metadata = getattr(member, "metadata", None) or getattr(member, "member_metadata", b"")
    return bytes(metadata), getattr(member, "client_id", "")


def differences_of(expected: Plain, answer: Plain, path: str = "") -> list[str]:
    """Where two answers differ, one line for each place.

    Where Apache Kafka answers UNKNOWN_SERVER_ERROR, it got an unexpected exception; any other error is accepted.
    """
    if expected == answer:
        return []
    if isinstance(expected, dict) and isinstance(answer, dict) and expected.keys() == answer.keys():
        pairs = [(f"{path}.{key}", expected[key], answer[key]) for key in expected]
    elif isinstance(expected, list) and isinstance(answer, list) and len(expected) == len(answer):
        pairs = [(f"{path}[{i}]", *pair) for i, pair in enumerate(zip(expected, answer, strict=True))]
    else:
        return [f"{path}: {json.dumps(expected)} != {json.dumps(answer)}"]
    if isinstance(expected, dict) and isinstance(answer, dict) and _foresees_more(expected, answer):
        pairs = [pair for pair in pairs if not pair[0].endswith((".error_code", ".error_message"))]
    return [line for place, a, b in pairs for line in differences_of(a, b, place)]


def _foresees_more(expected: dict[str, Plain], answer: dict[str, Plain]) -> bool:
    code = answer.get("error_code")
    return expected.get("error_code") == UNKNOWN_SERVER_ERROR and isinstance(code, int) and code > 0

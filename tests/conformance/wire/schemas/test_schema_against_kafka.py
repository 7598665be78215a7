"""Every schema, field for field, against the message definitions inside Apache Kafka's jars."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.schema import FRESH, Field, Kind, Message, Primitive, Struct, VersionRange
from tests.conformance.wire.schemas.message_definitions import Definition, definitions
from tests.support.wire.messages import every_message


class Shape(NamedTuple):
    """What a field is on the wire, in the notation of Kafka's definitions."""

    name: str
    type: str
    versions: str
    nullable: str
    tag: int | None
    tagged: str
    default: object
    ignorable: bool
    flexible: bool


def snake_case(name: str) -> str:
    return re.sub("([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def versions(definition: Definition, key: str) -> str:
    return str(VersionRange.parse(str(definition.get(key, "none"))))


def their_default(definition: Definition) -> object:
    """Kafka writes defaults as text or as JSON; a missing one is the zero of the type."""
    kind = str(definition["type"])
    text = definition.get("default", "")
    if text in ("null", None):
        return None
    if kind.startswith("[]"):
        assert text == ""
        return []
    match kind:
        case "bool":
            return str(text).lower() == "true"
        case "string":
            return text
        case "float64":
            return float(str(text or 0))
        case "uuid":
            return bytes(16)
        case "bytes":
            return b""
        case "records":
            return None
        case _ if kind.startswith(("int", "uint")):
            return int(str(text or "0"), 0)
        case _:
            return "its own defaults"


def our_default(field: Field) -> object:
    if field.default is FRESH:
        return [] if field.kind is Kind.ARRAY else "its own defaults"
    return field.default


def their_shape(definition: Definition) -> Shape:
    tag = definition.get("tag")
    return Shape(
        name=snake_case(str(definition["name"])),
        type=str(definition["type"]),
        versions=versions(definition, "versions"),
        nullable=versions(definition, "nullableVersions"),
        tag=None if tag is None else int(str(tag)),
        tagged=versions(definition, "taggedVersions"),
        default=their_default(definition),
        ignorable=str(definition.get("ignorable", False)).lower() == "true",
        flexible=definition.get("flexibleVersions") != "none",
    )


def our_shape(field: Field, type_: str) -> Shape:
    return Shape(
        name=field.name,
        type=type_,
        versions=str(field.versions),
        nullable=str(field.nullable),
        tag=field.tag,
        tagged=str(field.tagged),
        default=our_default(field),
        ignorable=field.ignorable,
        flexible=field.flexible,
    )


def parts_of(definition: Definition, commons: dict[str, Definition]) -> list[Definition] | None:
    """The fields of a struct, wherever they are defined; None for a primitive."""
    if "fields" in definition:
        return definition["fields"]  # type: ignore[return-value]
    common = commons.get(str(definition["type"]).removeprefix("[]"))
    return None if common is None else common["fields"]  # type: ignore[return-value]


def compare(struct: type[Struct], fields: list[Definition], commons: dict[str, Definition]) -> None:
    """Field by field and in order, then into the structs they hold."""
    theirs = [their_shape(field) for field in fields]
    ours = [our_shape(field, type_of(field)) for field in struct.FIELDS]
    assert ours == theirs, struct.__name__
    for field, definition in zip(struct.FIELDS, fields, strict=True):
        parts = parts_of(definition, commons)
        if parts is None:
            assert isinstance(field.element, Primitive | None)
        else:
            assert isinstance(field.element, type)
            compare(field.element, parts, commons)


def type_of(field: Field) -> str:
    """Structs that two messages of one module define differently under one name carry a prefix with us."""
    array, name = ("[]", field.wire_type[2:]) if field.kind is Kind.ARRAY else ("", field.wire_type)
    return array + PREFIXED.get(name, name)


PREFIXED = {
    "RequestEntryData": "EntryData",
    "ResponseEntryData": "EntryData",
    "RequestPartitionData": "PartitionData",
    "ResponsePartitionData": "PartitionData",
    "RequestTopicData": "TopicData",
    "ResponseTopicData": "TopicData",
    "SubscriptionTopicPartition": "TopicPartition",
    "AssignmentTopicPartition": "TopicPartition",
    "LeaderChangeMessageVoter": "Voter",
    "VotersRecordVoter": "Voter",
}


@pytest.mark.parametrize("message", every_message(), ids=lambda message: message.__name__)
def test_schema_is_kafkas(message: type[Message]) -> None:
    definition = definitions()[message.__name__]
    commons: dict[str, Definition] = {c["name"]: c for c in definition.get("commonStructs", [])}  # type: ignore[attr-defined]
    assert str(message.VERSIONS) == str(VersionRange.parse(str(definition["validVersions"])))
    assert str(message.FLEXIBLE_VERSIONS) == str(VersionRange.parse(str(definition["flexibleVersions"])))
    assert getattr(message, "API_KEY", None) == definition.get("apiKey")
    compare(message, definition["fields"], commons)  # type: ignore[arg-type]


def test_every_api_of_a_zookeeper_mode_broker_is_there() -> None:
    theirs = {d["apiKey"] for d in definitions().values() if "zkBroker" in d.get("listeners", [])}  # type: ignore[operator]
    assert set(API) == theirs
    assert len(API) == len(ApiKey)


def test_every_stored_value_that_zookeeper_mode_writes_is_there() -> None:
    ours = {message.__name__ for message in every_message()}
    assert {"OffsetCommitKey", "OffsetCommitValue", "GroupMetadataKey", "GroupMetadataValue"} <= ours
    assert {"TransactionLogKey", "TransactionLogValue", "DefaultPrincipalData"} <= ours
    assert {"ConsumerProtocolSubscription", "ConsumerProtocolAssignment", "RequestHeader", "ResponseHeader"} <= ours


def test_advertised_versions_are_kafkas() -> None:
    for key, spec in API.items():
        definition = definitions()[f"{spec.name}Request"]
        assert key == definition["apiKey"]
        served = VersionRange.parse(str(definition["validVersions"]))
        assert not definition.get("latestVersionUnstable")
        assert (spec.min_version, spec.max_version) == served
        flexible = VersionRange.parse(str(definition["flexibleVersions"]))
        assert spec.flexible_version == (flexible.first if flexible.last >= flexible.first else None)

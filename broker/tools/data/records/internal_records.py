"""Apache's formatters for the records of the internal topics `__consumer_offsets` and `__transaction_state`.

A record is a JSON object with the key and the value, each with its version and its fields. As in Apache Kafka nothing
comes between two records, not even the end of a line, and `OffsetsMessageFormatter` and `GroupMetadataMessageFormatter`
print nothing for the records of the other's kind.

Kafka: ApiMessageFormatter, OffsetsMessageFormatter, GroupMetadataMessageFormatter, TransactionLogMessageFormatter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.tools.data.records.deserializers import SerializationError
from odradek.coordinator.versioned_messages import CoordinatorRecordError, decode_versioned, read_version
from odradek.protocol.message_json import Json, json_text, to_json
from odradek.protocol.messages.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogKey,
    TransactionLogValue,
)

if TYPE_CHECKING:
    from odradek.broker.tools.data.records.record_format import ConsumedRecord
    from odradek.protocol.codec.schema import Message
    from odradek.protocol.records.record import Record

UNKNOWN: Final = "unknown"
"""In place of the fields, where the version is not known."""


class InternalRecordFormat(NamedTuple):
    """Which messages the keys and the values are."""

    key: type[Message]
    value: type[Message]
    other_key: type[Message] | None = None
    """The key of records that are not printed."""

    def line(self, found: ConsumedRecord) -> bytes:
        """Implements `RecordFormat`. Raises: SerializationError."""
        try:
            return self._text(found.record)
        except CoordinatorRecordError as error:
            raise SerializationError(str(error)) from error

    def _text(self, record: Record) -> bytes:
        if record.key is not None and self.other_key is not None:
            version = read_version(record.key)
            if self.other_key.VERSIONS.covers(version):
                decode_versioned(self.other_key, record.key)
                return b""
        parts: dict[str, Json] = {
            "key": _versioned(self.key, record.key),
            "value": _versioned(self.value, record.value),
        }
        return json_text(parts).encode()


def _versioned(kind: type[Message], data: bytes | None) -> Json:
    if data is None:
        return None
    version = read_version(data)
    known = kind.VERSIONS.covers(version)
    return {"version": version, "data": to_json(decode_versioned(kind, data), version) if known else UNKNOWN}


FORMATS: Final = {
    "OffsetsMessageFormatter": InternalRecordFormat(OffsetCommitKey, OffsetCommitValue, GroupMetadataKey),
    "GroupMetadataMessageFormatter": InternalRecordFormat(GroupMetadataKey, GroupMetadataValue, OffsetCommitKey),
    "TransactionLogMessageFormatter": InternalRecordFormat(TransactionLogKey, TransactionLogValue),
}
"""By the name of Apache's class."""

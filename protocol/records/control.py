"""Control batches: markers among the records that consumers never see.

The key of a control record is a version and a type; the type decides what the value holds. In ZooKeeper mode only the
markers that end a transaction (ABORT, COMMIT) are written; 2 to 6 belong to the metadata log of KRaft, and an unknown
type is ignored.

Kafka: ControlRecordType, EndTransactionMarker and ControlRecordUtils.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.errors import InvalidRecordError
from odradek.protocol.records.layout import NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from odradek.protocol.records.record import Record, SimpleRecord

if TYPE_CHECKING:
    from odradek.protocol.records.batch import AnyBatch

_KEY: Final = Struct(">hh")
_KEY_VERSION: Final = 0
_MARKER: Final = Struct(">hi")
_MARKER_VERSION: Final = 0


class ControlRecordType(IntEnum):
    """The type of a control record."""

    UNKNOWN = -1
    """A type of a later version: ignored. Kafka's UNKNOWN has no code on the wire either."""
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6

    @classmethod
    def parse(cls, key: bytes | None) -> ControlRecordType:
        """The type a control record's key names. Later key versions may only add fields behind these two."""
        if key is None or len(key) < _KEY.size:
            raise InvalidRecordError(
                f"Invalid size of a control record key: at least {_KEY.size} bytes are needed, but found "
                f"{'null' if key is None else len(key)}"
            )
        version, type_id = _KEY.unpack_from(key)
        if version < 0:
            raise InvalidRecordError(
                f"Invalid version found for control record: {version}. May indicate data corruption"
            )
        return cls(type_id) if 0 <= type_id <= cls.KRAFT_VOTERS else cls.UNKNOWN

    def key(self) -> bytes:
        """The key of a control record of this type."""
        if self is ControlRecordType.UNKNOWN:
            raise ValueError("Cannot serialize UNKNOWN control record type")
        return _KEY.pack(_KEY_VERSION, self)


class _MarkerFields(NamedTuple):
    type: ControlRecordType
    coordinator_epoch: int


class EndTransactionMarker(_MarkerFields):
    """The end of a producer's transaction in one partition."""

    __slots__ = ()

    def __new__(cls, *, type: ControlRecordType, coordinator_epoch: int) -> Self:  # noqa: A002
        if type not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            raise InvalidRecordError(f"Invalid control record type for end transaction marker {type!r}")
        return super().__new__(cls, type, coordinator_epoch)

    @property
    def is_commit(self) -> bool:
        return self.type is ControlRecordType.COMMIT

    def to_record(self, timestamp: int) -> SimpleRecord:
        """The control record that says so."""
        return SimpleRecord(timestamp, self.type.key(), _MARKER.pack(_MARKER_VERSION, self.coordinator_epoch))

    @classmethod
    def from_record(cls, record: Record | SimpleRecord) -> EndTransactionMarker:
        """Read a marker; later versions are read as far as they are known."""
        kind = ControlRecordType.parse(record.key)
        if record.value is None or len(record.value) < _MARKER.size:
            raise InvalidRecordError(
                f"Invalid value size found for end transaction marker. Must have at least {_MARKER.size} bytes, but "
                f"found only {len(record.value or b'')}"
            )
        version, coordinator_epoch = _MARKER.unpack_from(record.value)
        if version < 0:
            raise InvalidRecordError(
                f"Invalid version found for end transaction marker: {version}. May indicate data corruption"
            )
        return cls(type=kind, coordinator_epoch=coordinator_epoch)


def control_record_type(batch: AnyBatch) -> ControlRecordType | None:
    """The type of a control batch; None for a data batch, and for a control batch that compaction has emptied."""
    record = _control_record(batch)
    return None if record is None else ControlRecordType.parse(record.key)


def _control_record(batch: AnyBatch) -> Record | None:
    return next(batch.records(), None) if batch.is_control else None


def build_end_transaction_batch(
    marker: EndTransactionMarker,
    *,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytearray:
    """The control batch that ends a transaction: transactional, without a sequence, never compressed."""
    if producer_id == NO_PRODUCER_ID:
        raise ValueError("End transaction marker requires a valid producerId")
    return build_control_batch(
        marker.to_record(timestamp),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
    )


def build_control_batch(
    record: SimpleRecord,
    *,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    is_transactional: bool = False,
) -> bytearray:
    """A batch of one control record."""
    return build_batch(
        (record,),
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=is_transactional,
        is_control=True,
    )

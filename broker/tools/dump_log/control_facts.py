"""What a dump of a log says about control records: markers of transactions, and the control records of KRaft.

Kafka: DumpLogSegments.dumpLog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.broker.tools.dump_log.rows import pairs
from odradek.protocol.codec.codec import DecodeError, decode
from odradek.protocol.message_json import Json, json_text, to_json
from odradek.protocol.messages.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from odradek.protocol.records.control import ControlRecordType, EndTransactionMarker
from odradek.protocol.records.errors import InvalidRecordError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.protocol.codec.schema import Message
    from odradek.protocol.records.record import Record

_KRAFT_CONTROL_RECORDS: Final[Mapping[ControlRecordType, tuple[str, type[Message]]]] = {
    ControlRecordType.SNAPSHOT_HEADER: ("SnapshotHeader", SnapshotHeaderRecord),
    ControlRecordType.SNAPSHOT_FOOTER: ("SnapshotFooter", SnapshotFooterRecord),
    ControlRecordType.KRAFT_VERSION: ("KRaftVersion", KRaftVersionRecord),
    ControlRecordType.KRAFT_VOTERS: ("KRaftVoters", VotersRecord),
}


def control_text(record: Record) -> str:
    """What follows the metadata of a control record in its line. Raises: InvalidRecordError."""
    facts = control_facts(record)
    message = next(iter(facts.values()))
    # A message of KRaft has no colon behind its name.
    return f" {next(iter(facts))} {json_text(message)}" if isinstance(message, dict) else f" {pairs(facts)}"


def control_facts(record: Record) -> dict[str, Json]:
    """The same for an object. Raises: InvalidRecordError."""
    kind = ControlRecordType.parse(record.key)
    if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        marker = EndTransactionMarker.from_record(record)
        return {"endTxnMarker": marker.type.name, "coordinatorEpoch": marker.coordinator_epoch}
    if kind in _KRAFT_CONTROL_RECORDS:
        name, message_type = _KRAFT_CONTROL_RECORDS[kind]
        try:
            message = decode(message_type, record.value or b"", 0)
        except DecodeError as error:
            raise InvalidRecordError(str(error)) from error
        return {name: to_json(message, 0)}
    type_id = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
    return {"controlType": f"{kind.name}({type_id})"}

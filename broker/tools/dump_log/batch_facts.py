"""What a dump of a log says about batches and records, as the objects of `--json`.

Kafka: DumpLogSegments.printBatchLevel.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.dump_log.java_text import java_int, java_string
from odradek.protocol.records.batch import AnyBatch, RecordBatch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.errors import CorruptRecordError
from odradek.protocol.records.layout import MAX_INT32, NO_SEQUENCE
from odradek.protocol.records.record import HEADER_KEY_ERRORS, Record

if TYPE_CHECKING:
    from odradek.broker.tools.dump_log.record_decoders import Texts

TIMESTAMP_TYPES: Final = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}


def batch_facts(batch: AnyBatch, position: int) -> dict[str, object]:
    """Raises: CorruptRecordError."""
    facts: dict[str, object] = {}
    if isinstance(batch, RecordBatch):
        facts = {
            "baseOffset": batch.base_offset,
            "lastOffset": batch.last_offset,
            "count": batch.record_count,
            "baseSequence": batch.base_sequence,
            "lastSequence": last_sequence(batch),
            "producerId": batch.producer_id,
            "producerEpoch": batch.producer_epoch,
            "partitionLeaderEpoch": batch.partition_leader_epoch,
            "isTransactional": batch.is_transactional,
            "isControl": batch.is_control,
            "deleteHorizonMs": batch.delete_horizon_ms,
        }
    else:
        facts = {"offset": batch.last_offset}
    return facts | {
        "position": position,
        "timestampType": TIMESTAMP_TYPES[batch.timestamp_type],
        "timestamp": batch.max_timestamp,
        "size": batch.size_in_bytes,
        "magic": batch.magic,
        "compresscodec": codec(batch),
        "crc": batch.crc,
        "isvalid": batch.is_valid(),
    }


def record_facts(batch: AnyBatch, record: Record) -> dict[str, object]:
    return {
        "offset": record.offset,
        "timestampType": TIMESTAMP_TYPES[batch.timestamp_type],
        "timestamp": record.timestamp,
        "keySize": size(record.key),
        "valueSize": size(record.value),
    }


def content_facts(record: Record, texts: Texts) -> dict[str, object]:
    """Key and payload as a decoder prints them; bytes that are no UTF-8 text are `{"base64": "..."}`."""
    key, payload = texts
    return {"key": _content(record.key, key), "payload": _content(record.value, payload)}


def _content(data: bytes | None, text: str | None) -> object:
    if text is not None and data is not None and text == java_string(data):
        try:
            data.decode()
        except UnicodeDecodeError:
            return {"base64": b64encode(data).decode()}
    return text


def size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def header_key(key: str) -> str:
    return java_string(key.encode(errors=HEADER_KEY_ERRORS))


def last_sequence(batch: RecordBatch) -> int:
    """As Kafka computes it, also if the header is damaged and the sum overflows."""
    base, delta = batch.base_sequence, batch.last_offset_delta
    if (base >= 0 and delta >= 0) or base == NO_SEQUENCE:
        return batch.last_sequence
    if base > java_int(MAX_INT32 - delta):
        return java_int(delta - java_int(MAX_INT32 - base) - 1)
    return java_int(base + delta)


def codec(batch: AnyBatch) -> str:
    """Raises: CorruptRecordError."""
    try:
        return CompressionType(batch.compression_type).name.lower()
    except ValueError as error:
        raise CorruptRecordError(f"Unknown compression type id: {batch.compression_type}") from error

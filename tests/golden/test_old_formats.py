"""What a leader stores where records are written in format 0, 1 or 2, as Apache Kafka 3.9.1 stores it.

`records/old-formats-3.9.1.txt` was written by `records/CaptureOldFormats.java`: 20 sets of records, in every target
format, with three codecs and both kinds of time. Uncompressed bytes are compared. Compressed bytes depend on the
compressor, so there the header and the decompressed records are compared.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.errors import KafkaError
from odradek.protocol.metadata_version import MetadataVersion
from odradek.protocol.records.batch import LegacyBatch, RecordBatch, batches
from odradek.storage.append_info import AppendOrigin
from odradek.storage.config.log_config import LogConfig
from odradek.storage.validation.validation_rules import ValidationRules
from odradek.storage.validation.validator import analyze, validate_and_assign

ROWS = [line.split("\t") for line in (Path(__file__).parent / "records/old-formats-3.9.1.txt").read_text().splitlines()]
SENT = {row[1]: bytes.fromhex(row[2]) for row in ROWS if row[0] == "sent"}
STORED = [row[1:] for row in ROWS if row[0] == "stored"]
FORMATS = {"0": "0.9.0", "1": "0.10.2", "2": "2.8"}
NOW = 1_700_000_000_000 + 60_000


def outcome(name: str, target: str, codec: str, timestamp_type: str, protocol: str = "2.8") -> str:
    """What is stored in hex, or the error and what it says."""
    config = LogConfig.from_props(
        {"inter.broker.protocol.version": protocol},
        {
            "message.format.version": FORMATS[target] if protocol == "2.8" else "0.11.0",
            "compression.type": codec,
            "message.timestamp.type": timestamp_type,
        },
    )
    rules = ValidationRules.of_config(config, "t-0", validate_all=True)
    try:
        found = analyze(memoryview(SENT[name]), rules, AppendOrigin.CLIENT)
        stored = validate_and_assign(found, rules, AppendOrigin.CLIENT, next_offset=1000, leader_epoch=7, now_ms=NOW)
    except KafkaError as error:
        return f"{error.code.name} {error.message}"
    data = b"".join(stored.parts)
    assert (stored.first_offset, stored.size) == (1000, len(data))
    assert stored.last_offset == list(batches(memoryview(data)))[-1].last_offset
    return data.hex()


def comparable(stored: str) -> object:
    """What does not depend on the compressor. An error is compared by its code and what it says."""
    try:
        data = bytes.fromhex(stored)
    except ValueError:
        return stored
    found = list(batches(memoryview(data)))
    if not any(batch.compression_type for batch in found):
        return stored
    shown: list[object] = []
    for batch in found:
        assert batch.is_valid()
        shown += [batch.magic, batch.last_offset, batch.attributes, batch.max_timestamp]
        if isinstance(batch, LegacyBatch):
            shown += [bytes(message.buffer) for message in batch.inner_messages()] + [batch.key]
        else:
            assert isinstance(batch, RecordBatch)
            shown += [batch.base_offset, batch.partition_leader_epoch, batch.base_timestamp, batch.record_count]
            shown += [batch.record_bytes()]
    return shown


@pytest.mark.parametrize("row", STORED, ids=["-".join(row[:4]) for row in STORED])
def test_what_is_stored(row: list[str]) -> None:
    name, target, codec, timestamp_type, expected = row
    assert comparable(outcome(name, target, codec, timestamp_type)) == comparable(expected)


def test_zstd_is_refused_before_2_1() -> None:
    expected = next(row[1] for row in ROWS if row[0] == "zstd-before-2.1")
    assert MetadataVersion.of_text("2.0") is MetadataVersion.IBP_2_0_IV1
    assert outcome("zstd-2", "2", "producer", "CreateTime", protocol="2.0") == expected

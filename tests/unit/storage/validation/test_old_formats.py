"""A log whose records are written in an old format; the bytes are compared with Kafka's in `tests/golden`."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import batches
from odradek.protocol.records.layout import MAGIC_V1
from odradek.protocol.records.legacy import LegacyBatch, build_messages
from odradek.protocol.records.record import SimpleRecord
from odradek.storage.config.log_config import LogConfig
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.offsets import SpecialTimestamp
from odradek.storage.segment.fetch_data import FetchIsolation
from tests.support.disks.logs import NOW, TP, Disk, batch

PROTOCOL_2_8 = {"inter.broker.protocol.version": "2.8"}


def config(version: str, **overrides: str) -> LogConfig:
    return LogConfig.from_props(PROTOCOL_2_8, {"message.format.version": version, **overrides})


def old_log(path: Path, version: str, **overrides: str) -> UnifiedLog:
    log = Disk(path).log()
    log.update_config(config(version, **overrides))
    return log


def stored(log: UnifiedLog, start_offset: int = 0) -> list[LegacyBatch]:
    read = log.read(start_offset, 1 << 20, FetchIsolation.LOG_END, min_one_message=True).records
    data = read if isinstance(read, memoryview) else memoryview(read.read())
    found = list(batches(data))
    assert all(isinstance(message, LegacyBatch) for message in found)
    return [message for message in found if isinstance(message, LegacyBatch)]


def test_every_record_becomes_a_message_of_the_topics_format(tmp_path: Path) -> None:
    log = old_log(tmp_path, "0.10.2")
    info = log.append_as_leader(batch(b"a", b"b", b"c"), leader_epoch=3)
    assert (info.first_offset, info.last_offset) == (0, 2)
    assert (info.max_timestamp, log.log_end_offset) == (NOW + 2, 3)
    assert [(m.magic, m.last_offset, m.value) for m in stored(log)] == [
        (MAGIC_V1, 0, b"a"),
        (MAGIC_V1, 1, b"b"),
        (MAGIC_V1, 2, b"c"),
    ]
    log.close()


def test_each_message_is_indexed_by_itself(tmp_path: Path) -> None:
    log = Disk(tmp_path).log({"index.interval.bytes": "0"})
    log.update_config(config("0.10.2", **{"index.interval.bytes": "0"}))
    log.append_as_leader(batch(b"a", b"b", b"c"), leader_epoch=3)
    assert [message.last_offset for message in stored(log, start_offset=2)] == [2]
    found = log.fetch_offset_by_timestamp(NOW + 1)
    assert found is not None
    assert (found.offset, found.timestamp) == (1, NOW + 1)
    log.close()


def test_leader_epochs_are_not_kept_for_an_old_format(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    log.append_as_leader(batch(b"a"), leader_epoch=3)
    assert log.latest_epoch == 3
    log.update_config(config("0.10.2"))
    log.append_as_leader(batch(b"b"), leader_epoch=4)
    log.assign_epoch_start_offset(5, log.log_end_offset)
    assert log.latest_epoch == -1
    log.update_config(config("2.8"))
    log.append_as_leader(batch(b"c"), leader_epoch=6)
    assert [(entry.epoch, entry.start_offset) for entry in log.state.leader_epochs.entries] == [(6, 2)]
    log.close()


def test_producers_that_number_their_batches_are_refused(tmp_path: Path) -> None:
    log = old_log(tmp_path, "0.10.2")
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(batch(b"a", producer_id=9, producer_epoch=0, base_sequence=0), leader_epoch=0)
    assert refused.value.code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    assert log.log_end_offset == 0
    log.close()


def test_what_is_found_too_large_after_the_conversion_is_refused(tmp_path: Path) -> None:
    packed = batch(b"v" * 4000, compression=1)
    size = 34 + 1 + 4000  # of the message, its key and its value
    for limit, is_taken in ((size, True), (size - 1, False)):
        log = old_log(
            tmp_path / str(limit), "0.10.2", **{"max.message.bytes": str(limit), "compression.type": "uncompressed"}
        )
        if is_taken:
            log.append_as_leader(packed, leader_epoch=0)
        else:
            with pytest.raises(KafkaError) as refused:
                log.append_as_leader(packed, leader_epoch=0)
            assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
        log.close()


def test_times_cannot_be_searched_where_records_have_none(tmp_path: Path) -> None:
    log = old_log(tmp_path, "0.9.0")
    log.append_as_leader(batch(b"a"), leader_epoch=0)
    for timestamp in (NOW, SpecialTimestamp.MAX, SpecialTimestamp.EARLIEST_LOCAL):
        with pytest.raises(KafkaError) as refused:
            log.fetch_offset_by_timestamp(timestamp)
        assert refused.value.code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
        assert refused.value.message == (
            f"Cannot search offsets based on timestamp because message format version for partition {TP} is 0.9.0 "
            "which is earlier than the minimum required version 0.10.0-IV0"
        )
    latest = log.fetch_offset_by_timestamp(SpecialTimestamp.LATEST)
    assert latest is not None
    assert latest.offset == 1
    log.close()


def test_messages_that_only_get_their_offsets_are_not_converted(tmp_path: Path) -> None:
    log = old_log(tmp_path, "0.10.2")
    same = build_messages([SimpleRecord(NOW, None, b"v")] * 2, MAGIC_V1)
    lower = build_messages([SimpleRecord(-1, None, b"v")] * 2, 0)
    appended = [log.append_as_leader(memoryview(data), leader_epoch=0) for data in (same, lower, batch(b"a", b"b"))]
    assert [info.records_converted for info in appended] == [0, 2, 2]
    log.close()

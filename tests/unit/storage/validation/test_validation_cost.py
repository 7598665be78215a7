"""What the event loop validates itself: both sides of each limit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.protocol.records.batch import RecordBatch, batches
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import SimpleRecord
from odradek.storage.validation import validation_cost
from odradek.storage.validation.validation_cost import LongValidationError, check_rebuild, check_walk
from tests.support.disks.logs import NOW

RECORDS = validation_cost.REBUILT_RECORDS_MAX


def view(count: int = 1, value: bytes = b"", compression: int = 0) -> RecordBatch:
    records = [SimpleRecord(NOW, None, value)] * count
    return RecordBatch(memoryview(build_batch(records, compression_type=compression)))


def of_size(size: int, attributes: int) -> RecordBatch:
    """A batch that declares a size; only its header is looked at."""
    batch = view(value=bytes(size - len(view(value=bytes(size)).buffer) + size))
    batch.attributes = attributes
    assert batch.size_in_bytes == size
    return batch


@pytest.mark.parametrize(
    ("attributes", "limit"),
    [(0, validation_cost.REBUILT_BYTES_MAX), (1, validation_cost.REBUILT_COMPRESSED_BYTES_MAX)],
)
def test_bytes_that_are_rebuilt(attributes: int, limit: int) -> None:
    check_rebuild([of_size(limit, attributes)])
    with pytest.raises(LongValidationError):
        check_rebuild([of_size(limit + 1, attributes)])


def test_records_that_are_rebuilt() -> None:
    check_rebuild([view(RECORDS)])
    with pytest.raises(LongValidationError):
        check_rebuild([view(RECORDS + 1)])


def test_single_messages_that_are_rebuilt() -> None:
    messages = build_messages([SimpleRecord(NOW, None, None)] * (RECORDS + 1), 1)
    found = list(batches(memoryview(messages)))
    check_rebuild(found[1:])
    with pytest.raises(LongValidationError):
        check_rebuild(found)


@pytest.mark.parametrize(
    ("check", "limit"),
    [
        (lambda batch: check_rebuild([batch]), validation_cost.REBUILT_DECOMPRESSED_BYTES_MAX),
        (check_walk, validation_cost.WALKED_DECOMPRESSED_BYTES_MAX),
    ],
)
def test_a_few_bytes_of_zstd_that_become_megabytes(check: Callable[[RecordBatch], None], limit: int) -> None:
    overhead = 1024
    check(view(value=bytes(limit - 128 * 1024 - overhead), compression=CompressionType.ZSTD))
    large = view(value=bytes(limit + overhead), compression=CompressionType.ZSTD)
    assert large.size_in_bytes < validation_cost.REBUILT_COMPRESSED_BYTES_MAX
    with pytest.raises(LongValidationError):
        check(large)


def test_invalid_zstd_is_left_to_the_validation() -> None:
    batch = view(value=bytes(100))
    batch.attributes = CompressionType.ZSTD
    check_walk(batch)
    check_rebuild([batch])


def test_walks() -> None:
    check_walk(view(validation_cost.WALKED_RECORDS_MAX))
    with pytest.raises(LongValidationError):
        check_walk(view(validation_cost.WALKED_RECORDS_MAX + 1))
    limit = validation_cost.WALKED_COMPRESSED_BYTES_MAX
    check_walk(of_size(limit, 1))
    check_walk(of_size(limit + 1, 0))
    with pytest.raises(LongValidationError):
        check_walk(of_size(limit + 1, 1))

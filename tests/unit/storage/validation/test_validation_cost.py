"""What the event loop validates itself: both sides of each limit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.protocol.records.batch import RecordBatch, batches
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType, compress
from odradek.protocol.records.errors import InvalidRecordError
from odradek.protocol.records.layout import MAX_DECOMPRESSED_BYTES
from odradek.protocol.records.legacy import LegacyBatch, build_message, build_messages
from odradek.protocol.records.record import SimpleRecord
from odradek.storage.validation import validation_cost
from odradek.storage.validation.validation_cost import LongValidationError, check_rebuild, walk
from tests.support.disks.logs import NOW

RECORDS = validation_cost.REBUILT_RECORDS_MAX


def view(count: int = 1, value: bytes = b"", compression: int = 0, headers: int = 0) -> RecordBatch:
    records = [SimpleRecord(NOW, None, value, (("", None),) * headers)] * count
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


def check_walk(batch: RecordBatch) -> None:
    walk(batch, MAX_DECOMPRESSED_BYTES)


@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.ZSTD])
@pytest.mark.parametrize(
    ("check", "limit"),
    [
        (lambda batch: check_rebuild([batch]), validation_cost.DECODED_BYTES_MAX),
        (check_walk, validation_cost.WALKED_DECOMPRESSED_BYTES_MAX),
    ],
)
def test_a_few_bytes_that_become_many(check: Callable[[RecordBatch], None], limit: int, codec: CompressionType) -> None:
    overhead = 16
    check(view(value=bytes(limit - overhead), compression=codec))
    large = view(value=bytes(limit), compression=codec)
    assert large.size_in_bytes < validation_cost.WALKED_COMPRESSED_BYTES_MAX
    with pytest.raises(LongValidationError):
        check(large)


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.GZIP])
@pytest.mark.parametrize(
    ("check", "limit"),
    [
        (lambda batch: check_rebuild([batch]), validation_cost.DECODED_HEADERS_MAX),
        (check_walk, validation_cost.WALKED_HEADERS_MAX),
    ],
)
def test_headers_count(check: Callable[[RecordBatch], None], limit: int, compression: CompressionType) -> None:
    check(view(2, compression=compression, headers=limit // 2))
    with pytest.raises(LongValidationError):
        check(view(2, compression=compression, headers=limit // 2 + 1))


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_in_a_wrapper_count_by_their_bytes(magic: int) -> None:
    message = build_message(magic, 0, NOW, None, None)
    most = validation_cost.DECODED_WRAPPER_BYTES_MAX // len(message)

    def wrapper(count: int) -> LegacyBatch:
        inner = compress(CompressionType.GZIP, message * count, magic=magic)
        built = build_message(magic, 0, NOW, None, inner, compression_type=CompressionType.GZIP)
        return LegacyBatch(memoryview(built))

    check_rebuild([wrapper(most)])
    for found in ([wrapper(most + 1)], [wrapper(most), wrapper(1)]):
        assert sum(each.size_in_bytes for each in found) < validation_cost.REBUILT_COMPRESSED_BYTES_MAX
        with pytest.raises(LongValidationError):
            check_rebuild(found)


def test_invalid_zstd_is_left_to_the_validation() -> None:
    batch = view(value=bytes(100))
    batch.attributes = CompressionType.ZSTD
    check_rebuild([batch])
    with pytest.raises(InvalidRecordError):
        check_walk(batch)


def test_walks() -> None:
    check_walk(view(validation_cost.WALKED_RECORDS_MAX))
    with pytest.raises(LongValidationError):
        check_walk(view(validation_cost.WALKED_RECORDS_MAX + 1))
    limit = validation_cost.WALKED_COMPRESSED_BYTES_MAX
    with pytest.raises(InvalidRecordError):
        check_walk(of_size(limit, 1))
    check_walk(of_size(limit + 1, 0))
    with pytest.raises(LongValidationError):
        check_walk(of_size(limit + 1, 1))

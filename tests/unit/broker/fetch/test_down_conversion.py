"""Where records for old consumers are converted: on the event loop or in a worker process."""

from __future__ import annotations

import pytest

from odradek.broker.fetch.down_conversion import (
    WORKERS,
    Converted,
    DownConverter,
    Piece,
    convert_piece,
    is_small,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch import batches
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import compress
from odradek.protocol.records.convert import DownConverted
from odradek.protocol.records.legacy import build_message
from odradek.protocol.records.record import SimpleRecord
from odradek.storage.disk.ports import WorkerError
from odradek.storage.validation.validation_cost import (
    DECODED_BYTES_MAX,
    DECODED_HEADERS_MAX,
    REBUILT_COMPRESSED_BYTES_MAX,
    REBUILT_RECORDS_MAX,
)
from tests.support.disks.logs import NOW, batch
from tests.support.disks.managed_logs import DeferredWorkers

ZSTD = 4


def piece(count: int = 1, **kwargs: int) -> Piece:
    return Piece(bytes(batch(*[b"v"] * count, **kwargs)), 1, 0)


LARGE = piece(REBUILT_RECORDS_MAX + 1)


def test_little_is_converted_at_once() -> None:
    workers, results = DeferredWorkers(), list[tuple[Converted, int]]()
    converter = DownConverter(workers, iter(range(100)).__next__)
    converter.convert(piece(REBUILT_RECORDS_MAX), lambda *found: results.append(found))
    converter.convert(piece(compression=ZSTD), lambda *found: results.append(found))
    (converted, conversion_ns), (refused, _) = results
    assert conversion_ns == 1
    assert isinstance(converted, DownConverted)
    assert converted.converted == REBUILT_RECORDS_MAX
    assert [message.magic for message in batches(memoryview(converted.records))] == [1] * REBUILT_RECORDS_MAX
    assert refused is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert workers.jobs == []


def test_much_goes_to_workers_a_few_at_a_time() -> None:
    workers, results = DeferredWorkers(), list[tuple[Converted, int]]()
    converter = DownConverter(workers, iter(range(100)).__next__)
    for _ in range(WORKERS + 2):
        converter.convert(LARGE, lambda *found: results.append(found))
    assert (len(workers.jobs), results) == (WORKERS, [])
    workers.jobs[1].run()
    assert (len(workers.jobs), len(results)) == (WORKERS + 1, 1)
    assert results[0] == (convert_piece(LARGE, lambda _: None), 2), "both had begun"


@pytest.mark.parametrize("failure", [WorkerError("died"), OSError(5, "Input/output error")])
def test_death_of_a_worker_is_an_error(failure: Exception) -> None:
    workers, results = DeferredWorkers(), list[tuple[Converted, int]]()
    DownConverter(workers, iter(range(100)).__next__).convert(LARGE, lambda *found: results.append(found))
    workers.jobs[0].done(failure)
    assert results == [(ErrorCode.UNKNOWN_SERVER_ERROR, 1)]


def test_small_pieces() -> None:
    assert is_small(piece(REBUILT_RECORDS_MAX))
    assert not is_small(piece(REBUILT_RECORDS_MAX + 1))
    incompressible = bytes(range(256)) * (REBUILT_COMPRESSED_BYTES_MAX // 256)
    assert is_small(Piece(bytes(batch(incompressible * 2)), 1, 0))
    lz4 = bytes(batch(incompressible[:100], compression=3))
    assert is_small(Piece(lz4, 1, 0))
    assert not is_small(Piece(lz4 * (REBUILT_COMPRESSED_BYTES_MAX // len(lz4) + 1), 1, 0))
    assert is_small(Piece(b"\0" * 100, 1, 0)), "refused without being opened"


def test_what_a_batch_header_does_not_tell_makes_a_piece_large() -> None:
    records = [SimpleRecord(NOW, None, None, (("", None),) * (DECODED_HEADERS_MAX + 1))]
    for codec in (0, 1):
        assert not is_small(Piece(bytes(build_batch(records, compression_type=codec)), 1, 0))
    messages = compress(1, build_message(1, 0, NOW, None, None) * (DECODED_BYTES_MAX // 34))
    wrapper = build_message(1, 0, NOW, None, messages, compression_type=1)
    assert not is_small(Piece(wrapper, 0, 0))
    assert is_small(Piece(wrapper, 1, 0)), "it passes as it is"

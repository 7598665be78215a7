"""The result of a read."""

from __future__ import annotations

from odradek.storage.offsets import LogOffsetMetadata
from odradek.storage.segment.fetch_data import EMPTY_RECORDS, FetchDataInfo


def test_an_empty_answer_has_no_bytes_and_no_list_of_aborted_transactions() -> None:
    empty = FetchDataInfo(LogOffsetMetadata(5), EMPTY_RECORDS)
    assert (empty.size_in_bytes, empty.first_entry_incomplete, empty.aborted_transactions) == (0, False, None)

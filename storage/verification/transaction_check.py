"""Checks the transaction index of a segment against the transactional batches of the log.

An entry has a producer, the first offset of its aborted transaction, the offset of the marker and the last stable
offset after it. Entries are in the order of their markers, which lie in the segment. A first offset at or below the
producer's previous marker would hide committed data; a last stable offset that is too high would end the search for
aborted transactions too early. Both can be lower than expected where the start of the log is deleted. Each abort marker
whose transaction has data in the log must have an entry: otherwise readers of committed data see aborted records.
Compaction removes markers together with their entries.

One `Transactions` tracks the open transactions through all segments of a log; each segment has its own
`TransactionIndexCheck`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from odradek.protocol.records.control import ControlRecordType, control_record_type
from odradek.protocol.records.errors import CorruptRecordError
from odradek.storage.segment.transaction_index import CURRENT_VERSION, ENTRY, AbortedTxn
from odradek.storage.verification.findings import Finding, Report

if TYPE_CHECKING:
    from odradek.protocol.records.batch import AnyBatch


class Transactions:
    """The transactions of each producer id, up to a position of the log."""

    __slots__ = ("first_offsets", "last_markers")

    def __init__(self) -> None:
        self.first_offsets: dict[int, int] = {}
        """The first offsets of open transactions."""
        self.last_markers: dict[int, int] = {}
        """The offsets of the last markers."""


class TransactionIndexCheck:
    """Call `see` for each transactional batch in order, then `finish`."""

    def __init__(
        self, path: str, base_offset: int, transactions: Transactions, report: Report, *, is_open: bool
    ) -> None:
        self._path = path
        self._transactions = transactions
        self._report = report
        self._is_open = is_open
        self._entries = dict(self._read(base_offset))
        """(position, entry) by the offset of the marker; entries that are left at the end have no marker."""

    def _read(self, base_offset: int) -> list[tuple[int, tuple[int, AbortedTxn]]]:
        if not os.path.exists(self._path):
            return []
        with open(self._path, "rb") as file:
            content = file.read()
        whole = len(content) // ENTRY.size * ENTRY.size
        if whole < len(content) and not self._is_open:
            self._found(whole, f"{len(content) - whole} bytes at the end are not a whole entry")
        entries = []
        previous = base_offset - 1
        for position in range(0, whole, ENTRY.size):
            version, *fields = ENTRY.unpack_from(content, position)
            entry = AbortedTxn(*fields)
            if version != CURRENT_VERSION:
                self._found(position, f"unknown version {version}")
            elif entry.producer_id < 0 or entry.first_offset > entry.last_offset:
                self._found(position, f"{entry} is not a valid transaction")
            elif entry.last_offset <= previous:
                self._found(position, f"marker offset {entry.last_offset} does not follow {previous}")
            else:
                previous = entry.last_offset
                entries.append((entry.last_offset, (position, entry)))
        return entries

    def see(self, batch: AnyBatch, log_path: str, position: int) -> None:
        if not batch.is_control:
            self._transactions.first_offsets.setdefault(batch.producer_id, batch.base_offset)
            return
        try:
            kind = control_record_type(batch)
        except CorruptRecordError as error:
            self._report(Finding(log_path, position, f"control batch at offset {batch.base_offset}: {error}"))
            return
        producer_id = batch.producer_id
        first_seen = self._transactions.first_offsets.pop(producer_id, None)
        where, entry = self._entries.pop(batch.last_offset, (0, None))
        if entry is not None:
            if kind is ControlRecordType.COMMIT or entry.producer_id != producer_id:
                self._found(where, f"offset {entry.last_offset} is no abort marker of producer {entry.producer_id}")
            else:
                self._check_offsets(where, entry, first_seen)
        elif kind is ControlRecordType.ABORT and first_seen is not None and not self._is_open:
            self._report(
                Finding(
                    self._path,
                    None,
                    f"no entry for the transaction of producer {producer_id} from offset {first_seen} on that "
                    f"was aborted at offset {batch.last_offset}",
                )
            )

        self._transactions.last_markers[producer_id] = batch.last_offset

    def _check_offsets(self, where: int, entry: AbortedTxn, first_seen: int | None) -> None:
        transactions = self._transactions
        if first_seen is not None and entry.first_offset > first_seen:
            self._found(where, f"first offset {entry.first_offset}, but the transaction has data at {first_seen}")
        last_marker = transactions.last_markers.get(entry.producer_id, -1)
        if entry.first_offset <= last_marker:
            self._found(where, f"first offset {entry.first_offset}, but a transaction ended at {last_marker}")
        stable = min(transactions.first_offsets.values(), default=entry.last_offset + 1)
        if entry.last_stable_offset > stable:
            self._found(where, f"last stable offset {entry.last_stable_offset}, but it was {stable} at most")

    def finish(self, next_offset: int) -> None:
        """Call after the last batch, with the offset after it."""
        for position, entry in self._entries.values():
            if entry.last_offset < next_offset or not self._is_open:
                self._found(position, f"there is no marker at offset {entry.last_offset}")

    def _found(self, position: int, message: str) -> None:
        self._report(Finding(self._path, position, message))

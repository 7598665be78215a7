"""Two logs with random histories of leader changes, and a follower that has to find where they diverge.

The history is made by a dumb model, which compares the records of both logs one by one, cuts the follower's to what
they have in common, and copies. Only the last leader is followed for real.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from odradek.protocol.records.batch import batches
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.segment.fetch_data import FetchIsolation
from tests.support.async_test import async_test
from tests.support.disks.logs import append, read_all, read_bytes
from tests.support.in_process.replication.following import Following, bytes_of


@dataclass(frozen=True)
class Term:
    """One leader epoch: who leads, how many batches it appends before it replicates, how many batches the other then
    copies at most, and how many are appended after that.
    """

    leader: int
    epochs_skipped: int
    before: int
    copied: int
    after: int


TERMS = st.lists(
    st.builds(
        Term,
        leader=st.integers(0, 1),
        epochs_skipped=st.integers(0, 2),
        before=st.integers(0, 4),
        copied=st.integers(0, 6),
        after=st.integers(0, 3),
    ),
    max_size=8,
)


def common(one: UnifiedLog, other: UnifiedLog) -> int:
    """The offset up to which both logs have the same records."""
    offset = 0
    for ours, theirs in zip(read_all(one), read_all(other), strict=False):
        if ours != theirs:
            break
        offset = ours.offset + 1
    return offset


def copy(leader: UnifiedLog, follower: UnifiedLog, count: int) -> None:
    follower.truncate_to(common(leader, follower))
    for _ in range(count):
        data = memoryview(read_bytes(leader.read(follower.log_end_offset, 1, FetchIsolation.LOG_END, True)))
        for batch in batches(data):
            follower.append_as_follower(batch.buffer)


class History:
    """Applies terms to two logs. `committed` are the values below a high watermark that was in both."""

    def __init__(self, logs: tuple[UnifiedLog, UnifiedLog]) -> None:
        self.logs = logs
        self.epoch = 0
        self.committed: list[bytes | None] = []
        self._written = 0

    def apply(self, term: Term) -> None:
        leader, follower = self.logs[term.leader], self.logs[1 - term.leader]
        self.epoch += 1 + term.epochs_skipped
        leader.assign_epoch_start_offset(self.epoch, leader.log_end_offset)
        self._append(leader, term.before)
        if term.copied:
            copy(leader, follower, term.copied)
            # The follower's next fetch is at the end of these.
            end = min(leader.log_end_offset, follower.log_end_offset)
            for log in self.logs:
                log.update_high_watermark(end)
            self.committed = [record.value for record in read_all(leader) if record.offset < end]
        self._append(leader, term.after)

    def _append(self, log: UnifiedLog, count: int) -> None:
        for _ in range(count):
            values = [b"%d" % (self._written + number) for number in range(1 + self._written % 3)]
            self._written += len(values)
            append(log, *values, epoch=self.epoch)


async def follow_after(directory: str, terms: list[Term], swapped: bool) -> None:
    following = Following(Path(directory))
    following.tell_leader()
    following.follower.follow(leader=9)
    logs = following.leader_log(), following.log()
    history = History((logs[1], logs[0]) if swapped else logs)
    for term in terms:
        history.apply(term)
    following.lead(epoch=history.epoch + 1)
    following.append(b"last")
    for _ in range(30):
        await following.turns()
        if bytes_of(following.log()) == bytes_of(following.leader_log()):
            break
    assert bytes_of(following.log()) == bytes_of(following.leader_log())
    assert set(following.log().state.leader_epochs.entries) <= set(following.leader_log().state.leader_epochs.entries)
    values = [record.value for record in read_all(following.log())]
    assert values[: len(history.committed)] == history.committed
    await following.advance(500)
    assert following.leader_log().high_watermark == following.leader_log().log_end_offset
    following.shutdown()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TERMS, st.booleans())
@example([Term(0, 0, 2, 2, 1), Term(1, 0, 1, 0, 0), Term(0, 0, 1, 0, 0), Term(1, 0, 2, 0, 0)], False)
@example([Term(0, 0, 1, 1, 0), Term(1, 0, 3, 0, 0), Term(0, 0, 0, 0, 0), Term(1, 0, 0, 0, 0)], True)
def test_after_any_history_the_follower_ends_with_the_leaders_log(terms: list[Term], swapped: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async_test(follow_after)(directory, terms, swapped)

"""The lines of sessionize about its batches, from Spark's reports."""

from __future__ import annotations

from spark_jobs.common.streaming_run import Batch
from spark_jobs.sessions.session_run import SessionTotals


def batch(number: int, records: int, *, unreadable: int | None, late: int, kept: int) -> Batch:
    """A batch as Spark reports it; without input it has no observed metrics."""
    metrics = {} if unreadable is None else {"clicks": {"records": records, "unreadable": unreadable}}
    report = {
        "observedMetrics": metrics,
        "stateOperators": [{"numRowsDroppedByWatermark": late, "numRowsTotal": kept}],
    }
    return Batch(
        number=number, records=records, records_per_second=5.0, ends={"clicks": {"0": 9}}, lag=0, report=report
    )


def test_a_line_counts_what_was_left_out_and_what_is_open() -> None:
    assert SessionTotals().line(batch(3, 10, unreadable=2, late=1, kept=4)) == (
        "batch 3: 10 records, 5/s, up to clicks 0:9, lag 0; unreadable 2, late 1, open sessions 4"
    )


def test_the_summary_adds_up_the_batches() -> None:
    totals = SessionTotals()
    assert totals.summary() == "0 records in 0 batches; unreadable 0, late 0, open sessions 0"
    totals.line(batch(0, 10, unreadable=2, late=0, kept=4))
    assert totals.summary() == "10 records in 1 batch; unreadable 2, late 0, open sessions 4"
    totals.line(batch(1, 0, unreadable=None, late=3, kept=1))
    assert totals.summary() == "10 records in 2 batches; unreadable 2, late 3, open sessions 1"

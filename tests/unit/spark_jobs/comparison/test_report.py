from __future__ import annotations

from spark_jobs.comparison.matching import CHANGED, EXTRA, MISSING, REORDERED
from spark_jobs.comparison.report import Counts, Place, counts_of, difference_line, summary

PAIRS = [("orders", "orders.copy"), ("users", "users")]


def test_the_summary_is_a_table_with_a_verdict() -> None:
    counts = counts_of(
        PAIRS,
        [{"topic_pair": 0, "records": 12_345, "other_records": 12_344, "equal": 12_340}],
        [(0, MISSING, None, 2), (0, CHANGED, "value", 1), (0, CHANGED, "value,headers", 2), (0, REORDERED, None, 1)],
    )
    assert summary(counts) == [
        "topic   other topic  records  other records   equal  missing  extra  changed  reordered",
        "orders  orders.copy   12,345         12,344  12,340        2      0        3          1",
        "users   users              0              0       0        0      0        0          0",
        "orders: 2 changed in value, headers",
        "orders: 1 changed in value",
        "different: 2 missing, 3 changed, 1 reordered",
    ]
    assert [each.are_equal for each in counts] == [False, True]


def test_equal_topics() -> None:
    assert summary([Counts(topic="a", other_topic="b", records=3, other_records=3, equal=3)])[-1] == "equal"


def test_a_topic_whose_records_all_differ_in_their_time_gets_a_hint() -> None:
    compared = [{"topic_pair": 1, "records": 3, "other_records": 3, "equal": 0}]
    lines = summary(counts_of(PAIRS, compared, [(1, CHANGED, "timestamp", 3)]))
    hint = "users: 3 changed in timestamp: all records of the topic; --no-compare-timestamps does not compare them"
    assert hint in lines
    lines = summary(counts_of(PAIRS, compared, [(1, CHANGED, "timestamp", 2), (1, CHANGED, "value", 1)]))
    assert "users: 2 changed in timestamp" in lines


def test_a_difference_is_one_line() -> None:
    ours, other = Place(topic="a", partition=1, offset=17), Place(topic="b", partition=0, offset=3)
    assert difference_line(MISSING, None, ours, None) == "missing    a 1:17"
    assert difference_line(EXTRA, None, None, other) == "extra      b 0:3"
    assert difference_line(CHANGED, "value,timestamp", ours, other) == "changed    a 1:17 - b 0:3 (value, timestamp)"
    assert difference_line(REORDERED, None, ours, other) == "reordered  a 1:17 - b 0:3"

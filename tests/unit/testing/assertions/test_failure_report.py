from __future__ import annotations

from odradek.protocol.api import ApiKey
from tests.support.in_process.observed_broker import ObservedBroker
from tests.support.in_process.observed_groups import joined


def test_the_report_of_a_failed_test(observed: ObservedBroker) -> None:
    for number in range(25):
        observed.produce("t", b"%d" % number)
    observed.call(ApiKey.METADATA, 12, topics=[{"name": "x"}], allow_auto_topic_creation=False)
    observed.dispatch_waiting_fetch()
    lines = observed.failure_report().splitlines()
    assert lines[:2] == ["requests:", "  (the last 20 of 26)"]
    assert "Produce v9 t: ok" in lines[2]
    assert "Metadata v12 x: UNKNOWN_TOPIC_OR_PARTITION" in lines[21]
    assert lines[22:] == [
        "waiting:",
        "  Fetch of me",
        "topics:",
        "  t: 0 has 0..25",
        "groups:",
        "  none",
        "open transactions:",
        "  none",
        "warnings and errors of the broker:",
        "  none",
    ]


def test_the_report_shows_groups(observed: ObservedBroker) -> None:
    member_id = joined(observed)
    lines = observed.failure_report().splitlines()
    assert "  g: Stable, generation 1, 1 members, lag 0" in lines
    assert f"    member {member_id} at 10.0.0.7: t [0]" in lines

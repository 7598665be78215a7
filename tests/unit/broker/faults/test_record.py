from __future__ import annotations

import json
from dataclasses import replace

import pytest

from odradek.broker.faults.record import MAX_EVENTS, FaultEvent, FaultRecord
from odradek.broker.faults.rules.rule_texts import RuleError

EVENT = FaultEvent(
    number=1,
    rule="not_leader",
    client_id="me",
    api="Produce",
    version=9,
    call=3,
    topics=("t",),
    connection=2,
    correlation_id=-7,
    fault={"action": "error", "code": "NOT_LEADER_OR_FOLLOWER", "topic": "t"},
)
RECORD = FaultRecord(events=(EVENT,))


def test_a_record_goes_through_json_unchanged() -> None:
    assert FaultRecord.of_json(RECORD.to_json()) == RECORD
    assert RECORD.sequence() == [("me", "Produce", 3, "error")]


def test_requests_for_metadata_are_told_apart_by_what_they_ask_for() -> None:
    assert EVENT.key == ("me", "Produce", (), False, 3)
    asks = replace(EVENT, api="Metadata")
    assert asks.key == ("me", "Metadata", ("t",), False, 3)
    assert replace(asks, topics=()).key == ("me", "Metadata", (), False, 3)
    assert replace(asks, topics=(), all_topics=True).key == ("me", "Metadata", None, False, 3)
    assert replace(asks, fault={"action": "stale_metadata"}).key == ("me", "Metadata", ("t",), True, 3)


def damaged(**changes: object) -> str:
    plain = RECORD.to_plain()
    event = dict(plain["events"][0])  # type: ignore[index]
    event.update(changes)
    return json.dumps({**plain, "events": [event]})


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", ""),
        ("[" * 100_000, ""),
        ("[]", "format"),
        ('{"format": 2}', "format"),
        ('{"format": 1}', "events"),
        (json.dumps({"format": 1, "events": [0] * (MAX_EVENTS + 1)}), "events"),
        ('{"format": 1, "events": [{}]}', "events[0]"),
        (damaged(more=1), "events[0]"),
        (damaged(topics="t"), "events[0].topics"),
        (damaged(all_topics=None), "events[0].all_topics"),
        (damaged(fault=3), "events[0].fault"),
        (damaged(fault={"action": "explode"}), "action"),
        (damaged(api="Teleport"), "api"),
        (damaged(call="1"), "events[0].call"),
        (damaged(number=2**40), "events[0].number"),
        (damaged(client_id=None), "events[0].client_id"),
    ],
)
def test_what_is_no_record_is_refused(text: str, place: str) -> None:
    with pytest.raises(RuleError) as refused:
        FaultRecord.of_json(text)
    assert refused.value.key == place


def test_a_record_from_before_is_read_if_it_says_what_was_asked_for() -> None:
    plain = EVENT.to_plain()
    del plain["all_topics"]
    asks = plain | {"api": "Metadata"}
    assert FaultRecord.of_plain({"format": 1, "events": [plain, asks]}).events == (
        EVENT,
        replace(EVENT, api="Metadata"),
    )
    with pytest.raises(RuleError) as refused:  # all topics, or none: that was not recorded
        FaultRecord.of_plain({"format": 1, "events": [asks | {"topics": []}]})
    assert refused.value.key == "events[0].all_topics"

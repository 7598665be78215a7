from __future__ import annotations

import pytest

from odradek.broker.tools.dump_log.control_facts import control_facts, control_text
from odradek.protocol.records.errors import InvalidRecordError
from odradek.protocol.records.record import Record


def test_a_marker() -> None:
    record = Record(7, 0, b"\0\0\0\1", b"\0\0\0\0\0\4")
    assert control_facts(record) == {"endTxnMarker": "COMMIT", "coordinatorEpoch": 4}
    assert control_text(record) == " endTxnMarker: COMMIT coordinatorEpoch: 4"


def test_a_type_that_is_not_printed() -> None:
    assert control_facts(Record(7, 0, b"\0\0\0\2", b"")) == {"controlType": "LEADER_CHANGE(2)"}


def test_a_record_of_kraft_that_cannot_be_read() -> None:
    with pytest.raises(InvalidRecordError):
        control_facts(Record(7, 0, b"\0\0\0\3", b"\0"))

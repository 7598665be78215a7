from __future__ import annotations

import pytest

from odradek.broker.tools.dump_log.batch_facts import batch_facts, content_facts, record_facts
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.errors import CorruptRecordError
from odradek.protocol.records.layout import MAX_INT32
from odradek.protocol.records.record import Record
from tests.support.disks.logs import NOW, batch


def test_a_batch_and_its_record() -> None:
    found = RecordBatch(batch(b"v", base_offset=5, epoch=2))
    facts = batch_facts(found, 70)
    assert (facts["baseOffset"], facts["position"], facts["partitionLeaderEpoch"], facts["count"]) == (5, 70, 2, 1)
    assert (facts["timestampType"], facts["timestamp"], facts["isvalid"]) == ("CreateTime", NOW, True)
    (record,) = found.records(MAX_INT32)
    assert record_facts(found, record) == {
        "offset": 5,
        "timestampType": "CreateTime",
        "timestamp": NOW,
        "keySize": 1,
        "valueSize": 1,
    }


def test_an_unknown_codec_is_an_error() -> None:
    content = bytearray(batch(b"v"))
    content[22] = 7
    with pytest.raises(CorruptRecordError, match="type id: 7"):
        batch_facts(RecordBatch(memoryview(content)), 0)


@pytest.mark.parametrize(
    ("data", "text", "expected"),
    [
        (b"v", "v", "v"),
        (None, None, None),
        (b"\xff", "\ufffd", {"base64": "/w=="}),
        ("\ufffd".encode(), "\ufffd", "\ufffd"),
        (b"\0\0\0\x05", "5", "5"),
    ],
)
def test_what_a_decoder_prints_is_text_or_base64(data: bytes | None, text: str | None, expected: object) -> None:
    assert content_facts(Record(0, 0, data, None), (text, None)) == {"key": expected, "payload": None}

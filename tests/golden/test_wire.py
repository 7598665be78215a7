"""Messages as Apache Kafka 3.9.1 encodes them: ours are the same bytes, and we read the same values from theirs.

`wire/kafka-3.9.1.txt` was written by Kafka's generated classes (`python -m tests.support.wire.wire_oracle`); a line is
name, version, hex and the value in Kafka's message JSON. `conformance/wire/schemas/test_wire_oracle.py` compares more
with a JVM.
"""

from __future__ import annotations

import json

import pytest

from odradek.protocol.codec.codec import decode_from, encode
from odradek.protocol.message_json import to_json
from tests.support.wire.messages import every_message
from tests.support.wire.wire_oracle import read_golden

MESSAGES = {message.__name__: message for message in every_message()}
LINES = list(read_golden())


@pytest.mark.parametrize(("name", "version", "value", "encoded"), LINES, ids=[f"{line[0]}-{line[1]}" for line in LINES])
def test_kafkas_bytes(name: str, version: int, value: str, encoded: bytes) -> None:
    message, end = decode_from(MESSAGES[name], memoryview(encoded), version)
    assert end == len(encoded)
    assert to_json(message, version) == json.loads(value)
    assert encode(message, version) == encoded


def test_every_message_is_there() -> None:
    assert {name for name, *_ in LINES} == set(MESSAGES)

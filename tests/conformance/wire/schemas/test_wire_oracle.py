"""Every version of every message, byte for byte against Apache Kafka's own generated classes.

Seeded random values go to one JVM, which encodes them with the message classes of the 3.9.1 jars (`WireOracle.java`);
the bytes must be ours, and our decoder must read the values back out of Kafka's bytes.
"""

from __future__ import annotations

import random

import pytest

from odradek.protocol.codec.codec import decode_from, encode
from odradek.protocol.codec.schema import Message
from odradek.protocol.errors import DEFAULT_MESSAGES, REFRESHES_METADATA, RETRIABLE, ErrorCode
from tests.support.wire.messages import every_version, random_struct
from tests.support.wire.wire_oracle import encode_lines, kafka_encodes, kafka_errors, read_golden

SEED = 39_01
SAMPLES_PER_VERSION = 8
Sample = tuple[Message, int, bytes]


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    """(message, version, Kafka's bytes), several for each version of each message; the first is all defaults."""
    rng = random.Random(SEED)
    values = [
        (message() if index == 0 else random_struct(message, version, rng), version)
        for message, version in every_version()
        for index in range(SAMPLES_PER_VERSION)
    ]
    answers = kafka_encodes(values)
    return [(value, version, answer) for (value, version), answer in zip(values, answers, strict=True)]


def test_encodes_the_bytes_kafka_encodes(samples: list[Sample]) -> None:
    for value, version, theirs in samples:
        assert encode(value, version) == theirs, f"version {version} of {value}"


def test_decodes_what_kafka_encodes(samples: list[Sample]) -> None:
    for value, version, theirs in samples:
        assert decode_from(type(value), memoryview(theirs), version) == (value, len(theirs))


def test_every_version_is_covered(samples: list[Sample]) -> None:
    assert {(type(value), version) for value, version, _ in samples} == set(every_version())


def test_the_golden_bytes_are_kafkas() -> None:
    golden = list(read_golden())
    answers = encode_lines([f"{name}\t{version}\t{value}" for name, version, value, _ in golden])
    assert answers == [encoded for *_, encoded in golden]


def test_error_codes_are_kafkas() -> None:
    theirs = kafka_errors()
    assert [(error.code, error.name) for error in theirs] == [(code.value, code.name) for code in ErrorCode]
    for error in theirs:
        code = ErrorCode(error.code)
        assert DEFAULT_MESSAGES.get(code, "") == error.message
        assert (code in RETRIABLE) == error.retriable, error
        assert (code in REFRESHES_METADATA) == error.refreshes_metadata, error

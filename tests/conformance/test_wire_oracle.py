"""Every version of every message, byte for byte against Apache Kafka's own generated classes.

Seeded random values go to one JVM, which encodes them with the message classes of the 3.9.1 jars (`WireOracle.java`);
the bytes must be ours, and our decoder must read the values back out of Kafka's bytes.
"""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest

from odradek.protocol.codec import decode_from, encode
from odradek.protocol.schema import Message
from tests.support.jvm import QUICK_START, java_executable, libs_dir
from tests.support.messages import every_version, random_struct, to_json

SEED = 39_01
SAMPLES_PER_VERSION = 8
ORACLE = Path(__file__).parents[1] / "support" / "jvm" / "WireOracle.java"
Sample = tuple[Message, int, bytes]


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    """(message, version, Kafka's bytes), several for each version of each message."""
    rng = random.Random(SEED)
    values = [
        (message() if index == 0 else random_struct(message, version, rng), version)
        for message, version in every_version()
        for index in range(SAMPLES_PER_VERSION)
    ]
    lines = [
        f"{type(value).__name__}\t{version}\t{json.dumps(to_json(value, version), ensure_ascii=False)}\n"
        for value, version in values
    ]
    command = [java_executable(), *QUICK_START, "-cp", f"{libs_dir()}/*", str(ORACLE)]
    finished = subprocess.run(command, input="".join(lines).encode(), capture_output=True, timeout=120, check=False)
    assert finished.returncode == 0, finished.stderr.decode()
    answers = finished.stdout.decode().splitlines()
    assert len(answers) == len(values)
    refused = [(line, answer) for line, answer in zip(lines, answers, strict=True) if answer.startswith("ERROR")]
    assert not refused, f"{len(refused)} of {len(lines)}: {refused[0]}"
    return [(value, version, bytes.fromhex(hex_)) for (value, version), hex_ in zip(values, answers, strict=True)]


def test_encodes_the_bytes_kafka_encodes(samples: list[Sample]) -> None:
    for value, version, theirs in samples:
        assert encode(value, version) == theirs, f"version {version} of {value}"


def test_decodes_what_kafka_encodes(samples: list[Sample]) -> None:
    for value, version, theirs in samples:
        assert decode_from(type(value), memoryview(theirs), version) == (value, len(theirs))


def test_every_version_is_covered(samples: list[Sample]) -> None:
    assert {(type(value), version) for value, version, _ in samples} == set(every_version())

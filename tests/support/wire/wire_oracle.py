"""Apache Kafka's own message classes as an encoder: one JVM for any number of messages.

Run as a program it writes the golden file, `python -m tests.support.wire.wire_oracle`.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.codec.codec import encode
from odradek.protocol.codec.schema import Message
from odradek.protocol.message_json import to_json
from tests.support.processes.apache.jvm import KAFKA_VERSION, program_command
from tests.support.wire.messages import every_message, random_struct

PROGRAM = Path(__file__).parents[1] / "jvm" / "WireOracle.java"
GOLDEN = Path(__file__).parents[2] / "golden" / "wire" / f"kafka-{KAFKA_VERSION}.txt"
GOLDEN_SEED = 3
Value = tuple[Message, int]


def kafka_encodes(values: Sequence[Value]) -> list[bytes]:
    """Kafka's bytes for each (message, version)."""
    lines = [_line(type(value).__name__, version, to_json(value, version)) for value, version in values]
    return encode_lines(lines)


def encode_lines(lines: Sequence[str]) -> list[bytes]:
    """The same for lines of `Name <tab> version <tab> JSON`."""
    answers = _run("".join(f"{line}\n" for line in lines))
    assert len(answers) == len(lines)
    refused = [f"{answer}\n{line}" for line, answer in zip(lines, answers, strict=True) if answer.startswith("ERROR")]
    assert not refused, f"{len(refused)} of {len(lines)}: {refused[0]}"
    return [bytes.fromhex(answer) for answer in answers]


class KafkaErrorCode(NamedTuple):
    """One of Kafka's `Errors`."""

    code: int
    name: str
    retriable: bool
    refreshes_metadata: bool
    message: str


def kafka_errors() -> list[KafkaErrorCode]:
    """Kafka's error codes, with their default messages."""
    found = []
    for line in _run("", "errors"):
        code, name, retriable, refreshes, message = line.split("\t", 4)
        found.append(KafkaErrorCode(int(code), name, retriable == "true", refreshes == "true", message))
    return found


def _run(text: str, *arguments: str) -> list[str]:
    command = program_command(PROGRAM, *arguments)
    finished = subprocess.run(command, input=text.encode(), capture_output=True, timeout=120, check=False)
    assert finished.returncode == 0, finished.stderr.decode()
    return finished.stdout.decode().splitlines()


def read_golden() -> Iterator[tuple[str, int, str, bytes]]:
    """(name, version, JSON, bytes) of every line of the golden file."""
    for line in GOLDEN.read_text("utf-8").splitlines():
        name, version, hex_, value = line.split("\t", 3)
        yield name, int(version), value, bytes.fromhex(hex_)


def _line(name: str, version: int, value: object) -> str:
    return f"{name}\t{version}\t{json.dumps(value, ensure_ascii=False)}"


def _golden_value(message: type[Message], version: int) -> Message:
    """A value of moderate size, which people can read."""
    rng = random.Random(f"{GOLDEN_SEED} {message.__name__} {version}")
    candidates = [random_struct(message, version, rng) for _ in range(20)]
    candidates.sort(key=lambda value: abs(len(encode(value, version)) - 150))
    return candidates[0]


def main() -> None:
    """Write the golden file: the lowest, the last classic, the first flexible and the highest version of everything."""
    values = []
    for message in every_message():
        first, last = message.VERSIONS
        flexible = message.FLEXIBLE_VERSIONS.first
        chosen = {first, last} | {version for version in (flexible - 1, flexible) if first <= version <= last}
        values += [(_golden_value(message, version), version) for version in sorted(chosen)]
    with GOLDEN.open("w", encoding="utf-8") as file:
        for (value, version), encoded in zip(values, kafka_encodes(values), strict=True):
            text = json.dumps(to_json(value, version), ensure_ascii=False)
            file.write(f"{type(value).__name__}\t{version}\t{encoded.hex()}\t{text}\n")


if __name__ == "__main__":
    main()

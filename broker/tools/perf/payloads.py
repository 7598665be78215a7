"""The values that `perf produce` sends: random letters, lines of a file, or numbers.

Kafka: ProducerPerformance.generateRandomPayload, ProducerPerformance.readPayloadFile.
"""

from __future__ import annotations

from _random import Random  # the generator without its distributions: `random` takes 1 ms to import
from collections.abc import Callable
from typing import Final

from odradek.broker.tools.command.failures import CommandFailed

LETTERS: Final = 65_536
"""Random letters that are made once; each record has another part of them."""

_LETTER_OF_BYTE: Final = bytes(ord("A") + byte % 26 for byte in range(256))

Payload = Callable[[int], bytes]
"""From the number of a record to its value."""


def random_payload(size: int) -> Payload:
    """Upper-case letters, the same in each run."""
    rng = Random(0)
    letters = rng.getrandbits(LETTERS * 8).to_bytes(LETTERS, "little").translate(_LETTER_OF_BYTE)
    pool = letters * (size // LETTERS + 2)
    starts = [rng.getrandbits(16) for _ in range(1024)]

    def payload(number: int) -> bytes:
        start = starts[number % 1024]
        return pool[start : start + size]

    return payload


def file_payload(path: str, delimiter: str) -> tuple[Payload, int]:
    """A random piece of a file for each record, and the number of pieces. Raises: CommandFailed."""
    try:
        with open(path, encoding="utf-8") as file:  # `pathlib` takes a twentieth of the start of the command
            text = file.read()
    except (OSError, UnicodeError) as error:
        raise CommandFailed(f"cannot read {path}: {error}") from error
    if not text:
        raise CommandFailed("File does not exist or empty file provided.")
    pieces = text.split(delimiter)
    while len(pieces) > 1 and not pieces[-1]:
        pieces.pop()  # as Java's String.split
    encoded = [piece.encode() for piece in pieces]
    from random import Random as RandomWithChoices  # which random payloads do without

    rng = RandomWithChoices(0)
    return lambda number: rng.choice(encoded), len(encoded)


def monotonic_payload(number: int) -> bytes:
    """The number of the record."""
    return b"%d" % number

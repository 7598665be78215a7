"""A second opinion that needs no JVM: kio, a typed Kafka protocol library, reads our bytes and writes the same ones.

kio gives values meaning (error codes are an enum, milliseconds are durations), so the random values stay within what it
accepts. It lacks old versions and the controller's APIs; `test_wire_oracle.py` has them all.
"""

from __future__ import annotations

import importlib
import io
import random
import re

import pytest
from kio.serial import entity_reader, entity_writer

from odradek.protocol.codec.codec import encode
from odradek.protocol.codec.schema import Message, Struct
from odradek.protocol.errors import ErrorCode
from tests.support.wire.messages import every_version, random_struct

SAMPLES = 6
VERSIONS_THAT_KIO_HAS = 476


def kio_class(message: type[Message], version: int) -> type | None:
    """kio has a module for each API, version and direction."""
    name = message.__name__
    stem = re.sub("(Request|Response)$", "", name)
    module = re.sub("([a-z0-9])([A-Z])", r"\1_\2", stem).lower()
    side = name.removeprefix(stem).lower() or "data"
    try:
        found: type = getattr(importlib.import_module(f"kio.schema.{module}.v{version}.{side}"), name)
    except ModuleNotFoundError:
        return None
    return found


def tamed(value: Struct, rng: random.Random) -> Struct:
    """The same value with error codes that exist and times that are small."""
    for field in value.FIELDS:
        content = getattr(value, field.name)
        if field.name.endswith("error_code") and content:
            setattr(value, field.name, rng.choice(list(ErrorCode)).value)
        elif isinstance(content, int) and re.search("_ms$|timestamp", field.name) and content != -1:
            setattr(value, field.name, content % 1_000_000)
        for part in content if isinstance(content, list) else [content]:
            if isinstance(part, Struct):
                tamed(part, rng)
    return value


COVERED = [(message, version) for message, version in every_version() if kio_class(message, version) is not None]


def test_kio_covers_what_it_is_believed_to_cover() -> None:
    assert len(COVERED) == VERSIONS_THAT_KIO_HAS


@pytest.mark.parametrize(("message", "version"), COVERED, ids=lambda value: getattr(value, "__name__", value))
def test_kio_reads_our_bytes_and_writes_the_same(message: type[Message], version: int) -> None:
    theirs = kio_class(message, version)
    assert theirs is not None
    read, write = entity_reader(theirs), entity_writer(theirs)
    rng = random.Random(f"{message.__name__} {version}")
    for _ in range(SAMPLES):
        value = random_struct(message, version, rng)
        tamed(value, rng)
        ours = encode(value, version)
        entity, size = read(ours, 0)
        assert size == len(ours)
        written = io.BytesIO()
        write(written, entity)
        assert written.getvalue() == ours

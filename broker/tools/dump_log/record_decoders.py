"""Decodes the key and value of a record to the texts after `key:` and `payload:`.

A record decoder returns both texts, None for a part that is not printed. Plain records use one decoder of bytes for
each part, chosen by its class name as in Apache's tool. Only the names of Kafka's own decoders are known, and no class
is loaded.

`coordinator_decoders.py` has those of the topics of the coordinators.

Kafka: DumpLogSegments.DecoderMessageParser.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.tools.dump_log.java_text import java_string

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.protocol.records.record import Record

Texts: TypeAlias = tuple[str | None, str | None]
RecordDecoder: TypeAlias = "Callable[[Record], Texts]"
BytesDecoder: TypeAlias = "Callable[[bytes], str]"

STRING_DECODER: Final = "org.apache.kafka.tools.api.StringDecoder"

BYTES_DECODERS: Final[Mapping[str, BytesDecoder]] = {
    STRING_DECODER: java_string,
    "org.apache.kafka.tools.api.LongDecoder": lambda data: str(struct.unpack_from(">q", data)[0]),
    "org.apache.kafka.tools.api.IntegerDecoder": lambda data: str(struct.unpack_from(">i", data)[0]),
    # Java prints an array of bytes as its type and its identity hash, which differs from run to run.
    "org.apache.kafka.tools.api.DefaultDecoder": lambda data: f"[B@{id(data) & 0x7FFFFFFF:x}",
}
DEPRECATED_DECODERS: Final[Mapping[str, str]] = {
    name.replace("org.apache.kafka.tools.api.", "kafka.serializer."): name for name in BYTES_DECODERS
}


class RecordDecodingError(Exception):
    """A key or value that the chosen decoder cannot read; Apache's tool ends there too."""


def plain_decoder(decode_key: BytesDecoder, decode_value: BytesDecoder) -> RecordDecoder:
    """Decodes key and value separately; null is not printed."""

    def parse(record: Record) -> Texts:
        try:
            return (
                None if record.key is None else decode_key(record.key),
                None if record.value is None else decode_value(record.value),
            )
        except struct.error as error:
            raise RecordDecodingError(f"The record at offset {record.offset} is too short: {error}") from error

    return parse

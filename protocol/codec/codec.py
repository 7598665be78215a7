"""Messages to bytes and back.

`encode` and `decode` take a message class of `odradek.protocol.messages` and a version. The work is done by functions
generated for exactly that class and version, on first use: compiling one takes a few milliseconds, so a broker compiles
what its clients send and nothing else. `decoder_source.py` and `encoder_source.py` say what they look like; print one
with `print(generated_source(ProduceRequest, 9))`.

Invariants. For any bytes whatsoever `decode` returns a message or raises DecodeError, and allocates no more than the
bytes and the budget justify. Bytes after the message are ignored, as Apache Kafka ignores them. `encode` returns bytes
that `decode` reads back to an equal message, or raises EncodeError.

The wire format. Integers are big endian. Classic versions prefix strings with an int16 and bytes, records and arrays
with an int32; null is -1. Flexible ("compact") versions prefix all of them with an unsigned varint of length + 1; null
is 0; and every struct ends with its tagged fields: their count, then for each its tag, size and value, ascending. A
nullable struct is one byte, -1 for null, else 1 and the struct (KIP-893).

Kafka: MessageDataGenerator, which writes the methods `read`, `addSize` and `write` of each message.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import cache
from struct import error as StructError
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.codec.encode_error import EncodeError, RetainedTags, TooLargeError
from odradek.protocol.codec.field import BYTES_TYPES, Kind
from odradek.protocol.codec.limits import MAX_DECODED_VALUES, MAX_ENCODED_BYTES, MAX_TAGGED_FIELDS
from odradek.protocol.codec.schema import Message, RecordsRegion, Struct

if TYPE_CHECKING:
    from odradek.protocol.codec.source_writer import SourceWriter

__all__ = [
    "DecodeBudget",
    "DecodeError",
    "Decoder",
    "EncodeError",
    "Part",
    "TooLargeError",
    "decode",
    "decode_from",
    "decode_in_steps",
    "elements_in_steps",
    "encode",
    "encode_into",
    "encode_parts",
    "encode_parts_in_steps",
    "generated_source",
    "let_go",
    "parts_of",
    "size_of",
]

IN_STEPS = 1 << 16
"""Added to the version, under which the generators are kept beside the functions."""

PIECES_JOINED_AT_ONCE = 4096
"""Takes half a millisecond; the answer about 100,000 partitions is made of 600,000 pieces."""

ELEMENTS_FREED_AT_ONCE = 64
"""Of an array; each may have as many parts."""

M = TypeVar("M", bound=Message)
Part = bytes | bytearray | memoryview | RecordsRegion


class DecodeBudget(NamedTuple):
    """What one message may make the decoder build. The bytes themselves are bounded by the size of the frame.

    Without one, `decode` applies the message's own `MAX_VALUES`.
    """

    values: int = MAX_DECODED_VALUES
    tagged_fields: int = MAX_TAGGED_FIELDS


def decode(
    message_type: type[M],
    buffer: memoryview | bytes,
    version: int,
    budget: DecodeBudget | None = None,
    position: int = 0,
) -> M:
    """The message at `position` in `buffer`. Its records, if it has any, are views into the buffer."""
    return decode_from(message_type, buffer, version, budget, position)[0]


def decode_from(
    message_type: type[M],
    buffer: memoryview | bytes,
    version: int,
    budget: DecodeBudget | None = None,
    position: int = 0,
) -> tuple[M, int]:
    """The message at `position` in `buffer`, and the position after it."""
    decoder: Any = message_type.DECODERS.get(version) or _compile_decoder(message_type, version)
    values, tagged_fields = budget or (message_type.MAX_VALUES, MAX_TAGGED_FIELDS)
    try:
        return decoder(buffer, position, values, tagged_fields)  # type: ignore[no-any-return]
    except (StructError, IndexError, ValueError) as error:
        raise _undecodable(message_type, version, error) from None


class Decoder(Generic[M]):
    """Decodes messages of one type that come often: what `decode_from` looks up in the type, it has at hand."""

    __slots__ = ("_decoders", "_max_values", "_message_type")

    def __init__(self, message_type: type[M]) -> None:
        self._message_type = message_type
        self._decoders: dict[int, Callable[..., Any]] = message_type.DECODERS
        self._max_values = message_type.MAX_VALUES

    def decode(self, buffer: memoryview | bytes, version: int, position: int, max_values: int | None = None) -> M:
        """As `codec.decode`. `max_values`: what the message may have, if less than any message of its type."""
        decoder = self._decoders.get(version) or _compile_decoder(self._message_type, version)
        try:
            message, _ = decoder(buffer, position, max_values or self._max_values, MAX_TAGGED_FIELDS)
        except (StructError, IndexError, ValueError) as error:
            raise _undecodable(self._message_type, version, error) from None
        return message  # type: ignore[no-any-return]


def decode_in_steps(
    message_type: type[M],
    buffer: memoryview | bytes,
    version: int,
    position: int = 0,
    max_values: int | None = None,
) -> Generator[None, None, M]:
    """The same as `decode`, in steps: for messages that may be large. The caller may pause at each yield.

    `max_values`: what the message may have, if less than any message of its type. The empty arrays of the message are
    one list, to which nothing must be added.
    """
    decoder: Any = message_type.DECODERS.get(version + IN_STEPS) or _compile_decoder(message_type, version, IN_STEPS)
    try:
        message, _ = yield from decoder(buffer, position, max_values or message_type.MAX_VALUES, MAX_TAGGED_FIELDS)
    except (StructError, IndexError, ValueError) as error:
        raise _undecodable(message_type, version, error) from None
    return message  # type: ignore[no-any-return]


def elements_in_steps(message: Message) -> Generator[None, None, list[list[Any]]]:
    """All long arrays of the message, at any depth. To be taken while the message is in use, and given to `let_go`
    afterwards: what a message of a megabyte is made of takes 40 ms to free at once.
    """
    found: list[list[Any]] = []
    pending: list[Struct] = [message]
    while pending:
        struct = pending.pop()
        for name, has_parts in _arrays_of(type(struct)):
            elements = getattr(struct, name)
            if not elements:
                continue
            if has_parts and (large := getattr(elements, "large", None)):  # of a `PackedArray`
                pending += [element for element, _ in large.values()]
            if type(elements) is list:  # a `KeptArray` may be there 100,000 times; a `Mapped` has none
                if len(elements) > ELEMENTS_FREED_AT_ONCE:
                    found.append(elements)
                if has_parts:
                    pending += elements
        if len(pending) % ELEMENTS_FREED_AT_ONCE == 0:
            yield
    return found


def let_go(elements: list[list[Any]]) -> Generator[None, None, None]:
    """Forget the elements, in steps. The arrays stay as they are: a part of an answer may still be made of them."""
    for number in range(len(elements)):
        some = elements[number][:]
        elements[number] = []
        while some:
            del some[-ELEMENTS_FREED_AT_ONCE:]
            yield


@cache
def _arrays_of(struct_type: type[Struct]) -> tuple[tuple[str, bool], ...]:
    """The names of the arrays, and whether their elements have arrays."""
    return tuple(
        (field.name, isinstance(field.element, type) and bool(_arrays_of(field.element)))
        for field in struct_type.FIELDS
        if field.kind is Kind.ARRAY
    )


def _undecodable(message_type: type[Message], version: int, error: Exception) -> DecodeError:
    # A ValueError is invalid UTF-8, or a varint without end.
    reason = str(error) if isinstance(error, ValueError) else "the bytes end before the message does"
    return DecodeError(f"{message_type.__name__} version {version}: {reason}")


def encode(message: Message, version: int) -> bytes:
    """The message as bytes. A message with records that are a region of a file needs `encode_parts`."""
    out: list[Any] = []
    encode_into(message, version, out)
    try:
        return b"".join(out)
    except TypeError as error:
        raise EncodeError(f"{type(message).__name__} holds something that is not bytes: {error}") from error


def encode_parts(message: Message, version: int, prefix: bytes = b"") -> list[Part]:
    """`prefix` and the message, as few parts as possible: records stay parts of their own, all between is joined."""
    out: list[Any] = [prefix]
    return parts_of(out, encode_into(message, version, out))


def encode_parts_in_steps(message: Message, version: int, prefix: bytes = b"") -> Generator[None, None, list[Part]]:
    """The bytes of `encode_parts`, in steps: the caller may pause at each yield. The message must not change meanwhile.

    There may be more parts, since no more than some thousand pieces are joined in one go. Of equal ones in a row only
    the first is kept, as the same object many times. Raises: EncodeError; TooLargeError when more than
    MAX_ENCODED_BYTES are joined. What the message contains many times and is not joined counts once.
    """
    encoder: Any = message.ENCODERS.get(version + IN_STEPS) or _compile_encoder(type(message), version, IN_STEPS)
    out: list[Any] = [prefix]
    marks: list[int] = []
    parts: list[Part] = []
    counted: dict[int, int] = {}
    """The sizes of the pieces that are not joined, by id. They stay in `out` or `parts`, so that no other piece gets
    their ids."""
    in_memory_bytes = marks_seen = 0
    try:
        for _ in encoder(message, out, marks):
            if marks:
                for mark in marks[marks_seen:]:
                    piece = out[mark]
                    if isinstance(piece, BYTES_TYPES) and id(piece) not in counted:
                        counted[id(piece)] = len(piece)
                        in_memory_bytes += len(piece)
                marks_seen = len(marks)
            if len(out) >= PIECES_JOINED_AT_ONCE:
                joined = parts_of(out, marks)
                in_memory_bytes += size_of(joined) - size_of([out[mark] for mark in marks])
                _add_parts(parts, joined)
                out.clear()
                marks.clear()
                marks_seen = 0
            if in_memory_bytes > MAX_ENCODED_BYTES:
                raise TooLargeError(f"{type(message).__name__} needs more than {MAX_ENCODED_BYTES} bytes of memory")
            yield
    except RetainedTags:
        return encode_parts(message, version, prefix)
    except (StructError, AttributeError, TypeError, ValueError) as error:
        raise _unencodable(message, version, error) from error
    return parts + parts_of(out, marks)


def _add_parts(parts: list[Part], joined: list[Part]) -> None:
    """Append what was joined. The answer about 150,000 equal elements is many times the same bytes, of 27 MB in all."""
    for part in joined:
        if parts and type(part) is bytes and type(parts[-1]) is bytes and parts[-1] == part:
            part = parts[-1]
        parts.append(part)


def parts_of(out: list[Any], marks: list[int]) -> list[Part]:
    """The pieces with as few parts as possible: what is marked stays a part of its own, all between is joined."""
    if not marks:
        return [b"".join(out)]
    parts: list[Part] = []
    start = 0
    for mark in marks:
        if mark > start:
            parts.append(b"".join(out[start:mark]))
        parts.append(out[mark])
        start = mark + 1
    if start < len(out):
        parts.append(b"".join(out[start:]))
    return parts


def size_of(parts: Sequence[Part]) -> int:
    """How many bytes the parts put on the wire."""
    size = 0
    for part in parts:
        size += len(part) if isinstance(part, BYTES_TYPES) else part.size_in_bytes
    return size


def generated_source(message_type: type[Message], version: int) -> str:
    """The decoder and the encoder of one version, to be read by people."""
    from odradek.protocol.codec.decoder_source import DecoderSource
    from odradek.protocol.codec.encoder_source import EncoderSource

    return f"{DecoderSource(message_type, version).text}\n\n{EncoderSource(message_type, version).text}"


def encode_into(message: Message, version: int, out: list[Any]) -> list[int]:
    """Append the pieces of the encoded message to `out`. Returns the positions of what stays a part of its own."""
    encoder: Any = message.ENCODERS.get(version) or _compile_encoder(type(message), version)
    marks: list[int] = []
    start = len(out)
    try:
        try:
            encoder(message, out, marks)
        except RetainedTags:
            del out[start:]
            marks.clear()
            _retaining_encoder(type(message), version)(message, out, marks)
    except (StructError, AttributeError, TypeError, ValueError) as error:
        raise _unencodable(message, version, error) from error
    return marks


def _unencodable(message: Message, version: int, error: Exception) -> EncodeError:
    """null where null is not allowed, a number out of its range, text that is not Unicode, a wrong type"""
    return EncodeError(f"{type(message).__name__} version {version}: {error}")


def _compile_decoder(message_type: type[Message], version: int, kind: int = 0) -> Callable[..., Any]:
    if not message_type.VERSIONS.covers(version):
        raise DecodeError(f"{message_type.__name__} has no version {version}")
    from odradek.protocol.codec.decoder_source import DecoderSource  # a short command does without: `first_uses.py`

    source = DecoderSource(message_type, version, in_steps=kind == IN_STEPS)
    decoder = _compile(source, "decode", message_type, version)
    message_type.DECODERS[version + kind] = decoder
    return decoder


def _compile_encoder(message_type: type[Message], version: int, kind: int = 0) -> Callable[..., Any]:
    if not message_type.VERSIONS.covers(version):
        raise EncodeError(f"{message_type.__name__} has no version {version}")
    from odradek.protocol.codec.encoder_source import EncoderSource  # as above

    source = EncoderSource(message_type, version, in_steps=kind == IN_STEPS)
    encoder = _compile(source, "encode", message_type, version)
    message_type.ENCODERS[version + kind] = encoder
    return encoder


def _retaining_encoder(message_type: type[Message], version: int) -> Callable[..., Any]:
    if not message_type.FLEXIBLE_VERSIONS.covers(version):
        raise EncodeError(f"Tagged fields were set, but version {version} of {message_type.__name__} has none")
    key = -1 - version  # beside the plain encoders; versions are not negative
    encoder = message_type.ENCODERS.get(key)
    if encoder is None:
        from odradek.protocol.codec.encoder_source import EncoderSource  # as above

        source = EncoderSource(message_type, version, retaining=True)
        encoder = _compile(source, "encode", message_type, version)
        message_type.ENCODERS[key] = encoder
    return encoder


def _compile(source: SourceWriter, function: str, message_type: type[Message], version: int) -> Callable[..., Any]:
    exec(compile(source.text, f"<{function} {message_type.__name__} version {version}>", "exec"), source.names)
    compiled: Any = source.names[function]
    return compiled  # type: ignore[no-any-return]

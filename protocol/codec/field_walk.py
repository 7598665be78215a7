"""Reads and writes small messages by walking their fields, without a function that is generated for them.

To generate and compile the function of one version takes up to a millisecond, and a command that asks a broker one
question needs six of them. Walking the fields is 3 to 14 times slower than such a function, which does not count for a
message of a few hundred bytes. `first_uses.py` decides which of the two it is.

Invariants. What is written and read here is what `codec.encode` and `codec.decode` write and read. Whatever is not
plain (errors of all kinds, unknown tags to be sent on, records in files) raises NotWalked: the generated function is to
say what it is. The count of an array is compared with the bytes left before it is used.
"""

from __future__ import annotations

from functools import cache
from struct import Struct as Layout
from struct import error as StructError
from struct import pack, unpack_from
from typing import TYPE_CHECKING, Final, TypeVar, cast

from odradek.protocol.codec.field import BYTES_TYPES, FRESH, Field, Kind, Primitive, RawTaggedField
from odradek.protocol.codec.limits import MAX_STRING_BYTES
from odradek.protocol.codec.source_writer import FORMATS, WIDTHS, fields_at, holds_records
from odradek.protocol.codec.varint import read_uvarint, write_uvarint

if TYPE_CHECKING:
    from odradek.protocol.codec.schema import Message, Struct

    M = TypeVar("M", bound=Message)

READ_BYTES_MAX: Final = 4096
"""Of a message that is read by walking."""

WRITTEN_ELEMENTS_MAX: Final = 64
"""Of an array of structs that is written by walking."""

_UNKNOWN: Final = "unknown_tagged_fields"
"""A slot of every struct, which its class declares as one for a type checker."""

_READ: Final = {kind: Layout(f">{code}").unpack_from for kind, code in FORMATS.items()}
_WRITE: Final = {kind: Layout(f">{code}").pack for kind, code in FORMATS.items()}
_NUMBERS: Final = FORMATS.keys() - {Kind.UUID}


class NotWalked(Exception):
    """The message is not small and plain."""


@cache
def _fields_at(struct: type[Struct], version: int) -> tuple[list[Field], list[Field], list[Field]]:
    return fields_at(struct, version)


def walk_decode(message_type: type[M], data: memoryview | bytes, version: int, position: int) -> M:
    """The message at `position`. Raises: NotWalked."""
    if len(data) - position > READ_BYTES_MAX or not message_type.VERSIONS.covers(version):
        raise NotWalked
    reader = _Reader(message_type, data, version, position)
    try:
        return cast("M", reader.struct(message_type))
    except (StructError, IndexError, ValueError) as error:
        raise NotWalked from error


def walk_encode(message: Message, version: int) -> bytes:
    """The message as bytes. Raises: NotWalked."""
    if not message.VERSIONS.covers(version):
        raise NotWalked
    writer = _Writer(version, is_flexible=message.FLEXIBLE_VERSIONS.covers(version))
    try:
        writer.struct(message)
        return b"".join(writer.out)
    except (StructError, AttributeError, TypeError, ValueError) as error:
        raise NotWalked from error


class _Reader:
    __slots__ = ("_data", "_end", "_is_flexible", "_pos", "_version")

    def __init__(self, message_type: type[Message], data: memoryview | bytes, version: int, position: int) -> None:
        views = holds_records(message_type, version)  # records stay views into the buffer
        self._data: memoryview | bytes = memoryview(data) if views else bytes(data)
        self._end = len(data)
        self._pos = position
        self._version = version
        self._is_flexible = message_type.FLEXIBLE_VERSIONS.covers(version)

    def struct(self, struct_type: type[Struct]) -> Struct:
        in_place, tagged, absent = _fields_at(struct_type, self._version)
        value = _new(struct_type)
        for field in absent + tagged:
            setattr(value, field.name, _default(field))
        for field in in_place:
            setattr(value, field.name, self._value(field))
        if self._is_flexible:
            self._tags(value, tagged)
        return value

    def _value(self, field: Field) -> object:
        is_nullable = field.nullable.covers(self._version)
        if field.kind is Kind.STRUCT:
            if is_nullable and self._fixed(Kind.INT8) < 0:
                return None
            return self.struct(cast("type[Struct]", field.element))
        if field.kind is Kind.ARRAY:
            return self._array(cast("Primitive[object] | type[Struct]", field.element), is_nullable=is_nullable)
        return self._primitive(field.kind, is_nullable=is_nullable, is_compact=field.flexible and self._is_flexible)

    def _fixed(self, kind: Kind) -> int:
        (value,) = _READ[kind](self._data, self._pos)
        self._pos += WIDTHS[kind]
        return cast("int", value)

    def _uvarint(self) -> int:
        value, self._pos = read_uvarint(self._data, self._pos)
        return value

    def _primitive(self, kind: Kind, *, is_nullable: bool, is_compact: bool) -> object:
        if kind in FORMATS:
            return self._fixed(kind)
        size = self._uvarint() - 1 if is_compact else self._fixed(Kind.INT16 if kind is Kind.STRING else Kind.INT32)
        if size < 0 and is_nullable:
            return None
        if kind is Kind.STRING and size > MAX_STRING_BYTES:
            raise NotWalked
        piece = self._piece(size)
        if kind is Kind.RECORDS:
            return piece
        return str(piece, "utf-8") if kind is Kind.STRING else bytes(piece)

    def _piece(self, size: int) -> memoryview | bytes:
        stop = self._pos + size
        if not self._pos <= stop <= self._end:
            raise NotWalked
        piece = self._data[self._pos : stop]
        self._pos = stop
        return piece

    def _array(self, element: Primitive[object] | type[Struct], *, is_nullable: bool) -> list[object] | None:
        count = self._uvarint() - 1 if self._is_flexible else self._fixed(Kind.INT32)
        if count < 0 and is_nullable:
            return None
        if not 0 <= count <= self._end - self._pos:  # each element has a byte at least
            raise NotWalked
        if not isinstance(element, Primitive):
            return [self.struct(element) for _ in range(count)]
        if element.kind not in _NUMBERS:
            return [
                self._primitive(element.kind, is_nullable=False, is_compact=self._is_flexible) for _ in range(count)
            ]
        values = unpack_from(f">{count}{FORMATS[element.kind]}", self._data, self._pos)
        self._pos += count * WIDTHS[element.kind]
        return list(values)

    def _tags(self, value: Struct, tagged: list[Field]) -> None:
        last = -1
        for _ in range(self._uvarint()):
            tag, size = self._uvarint(), self._uvarint()
            stop = self._pos + size
            if tag <= last or stop > self._end:
                raise NotWalked
            last = tag
            field = next((field for field in tagged if field.tag == tag), None)
            if field is not None:
                setattr(value, field.name, self._value(field))
            else:
                unknown = RawTaggedField(tag, bytes(self._piece(size)))
                setattr(value, _UNKNOWN, [*(value.unknown_tagged_fields or ()), unknown])
            if self._pos != stop:
                raise NotWalked


class _Writer:
    __slots__ = ("_is_flexible", "_version", "out")

    def __init__(self, version: int, *, is_flexible: bool) -> None:
        self._version = version
        self._is_flexible = is_flexible
        self.out: list[bytes] = []

    def struct(self, value: Struct) -> None:
        in_place, tagged, absent = _fields_at(type(value), self._version)
        if value.unknown_tagged_fields:
            raise NotWalked
        for field in absent:
            if not field.ignorable and _differs(field, getattr(value, field.name)):
                raise NotWalked
        for field in in_place:
            self._value(field, getattr(value, field.name))
        if self._is_flexible:
            self._tags([(field, part) for field in tagged if _differs(field, part := getattr(value, field.name))])

    def _tags(self, present: list[tuple[Field, object]]) -> None:
        outer = self.out
        outer.append(write_uvarint(len(present)))
        for field, value in present:
            self.out = []
            self._value(field, value)
            data = b"".join(self.out)
            outer += (write_uvarint(field.tag or 0), write_uvarint(len(data)), data)
        self.out = outer

    def _value(self, field: Field, value: object) -> None:
        is_nullable = field.nullable.covers(self._version)
        if field.kind is Kind.STRUCT:
            if is_nullable:
                self.out.append(b"\xff" if value is None else b"\x01")
            if value is not None or not is_nullable:
                self.struct(cast("Struct", value))
        elif field.kind is Kind.ARRAY:
            element = cast("Primitive[object] | type[Struct]", field.element)
            self._array(element, value, is_nullable=is_nullable)
        else:
            self._primitive(field.kind, value, is_nullable=is_nullable, is_compact=field.flexible and self._is_flexible)

    def _primitive(self, kind: Kind, value: object, *, is_nullable: bool, is_compact: bool) -> None:
        if kind in FORMATS:
            if kind is Kind.UUID and len(cast("bytes", value)) != WIDTHS[Kind.UUID]:
                raise NotWalked
            self.out.append(_WRITE[kind](value))
        elif value is None:
            self._size(-1, is_string=kind is Kind.STRING, is_compact=is_compact, is_nullable=is_nullable)
        else:
            data = cast("str", value).encode() if kind is Kind.STRING else value
            if not isinstance(data, BYTES_TYPES) or (kind is Kind.STRING and len(data) > MAX_STRING_BYTES):
                raise NotWalked
            self._size(len(data), is_string=kind is Kind.STRING, is_compact=is_compact)
            self.out.append(cast("bytes", data))

    def _size(self, size: int, *, is_string: bool, is_compact: bool, is_nullable: bool = True) -> None:
        """A length or count; -1 is null."""
        if size < 0 and not is_nullable:
            raise NotWalked
        self.out.append(write_uvarint(size + 1) if is_compact else pack(">h" if is_string else ">i", size))

    def _array(self, element: Primitive[object] | type[Struct], value: object, *, is_nullable: bool) -> None:
        if value is not None and (type(value) is not list or len(value) > WRITTEN_ELEMENTS_MAX):
            raise NotWalked
        elements = cast("list[object] | None", value)
        size = -1 if elements is None else len(elements)
        self._size(size, is_string=False, is_compact=self._is_flexible, is_nullable=is_nullable)
        for part in elements or ():
            if isinstance(element, Primitive):
                self._primitive(element.kind, part, is_nullable=False, is_compact=self._is_flexible)
            else:
                self.struct(cast("Struct", part))


def _new(struct_type: type[Struct]) -> Struct:
    value = object.__new__(struct_type)
    setattr(value, _UNKNOWN, None)
    return value


def _default(field: Field) -> object:
    if field.default is not FRESH:
        return field.default
    if field.kind is Kind.ARRAY:
        return []
    value = _new(cast("type[Struct]", field.element))
    for part in type(value).FIELDS:
        setattr(value, part.name, _default(part))
    return value


def _differs(field: Field, value: object) -> bool:
    """Whether the value is not the default of the field."""
    if field.kind is Kind.STRUCT and field.default is FRESH:
        struct = cast("Struct", value)
        parts = any(_differs(part, getattr(struct, part.name)) for part in type(struct).FIELDS)
        return parts or bool(struct.unknown_tagged_fields)
    if field.default is None:
        return value is not None
    if field.kind is Kind.ARRAY:
        return bool(value) or value is None
    return value != field.default

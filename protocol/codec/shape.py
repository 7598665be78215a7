"""Encoders for frequent shapes of a message, which need no message.

A shape says where the values of some fields come from, as Python expressions; all other fields have their defaults.
From it and the schema a function is generated for each version, as `encoder_source.py` generates those for whole
messages:

    def encode(ARGUMENTS, out): ...

appends the same bytes to `out` as the encoder of a message with these values. To build the message, and to look at each
of its fields, takes several times as long.

Invariant: a shape has no tagged fields, and no field that a version neither has nor may leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

from odradek.protocol.codec.encode_error import EncodeError
from odradek.protocol.codec.encoder_source import EncoderSource
from odradek.protocol.codec.field import Field, Kind
from odradek.protocol.codec.schema import Message, Struct
from odradek.protocol.codec.source_writer import FORMATS, WIDTHS, SourceWriter, fields_at

Fields: TypeAlias = "Mapping[str, str | Each]"
"""The expressions of fields by name. They may use the arguments, and the variables of the loops around them."""


class Each(NamedTuple):
    """The structs of an array: one for each of `elements`, an expression for something with a length."""

    variables: str
    elements: str
    fields: Fields


class Shape:
    """A shape of one message, and its encoders by version."""

    __slots__ = ("_arguments", "_fields", "_message", "encoders")

    def __init__(self, message: type[Message], arguments: str, fields: Fields) -> None:
        self._message = message
        self._arguments = arguments
        self._fields = fields
        self.encoders: dict[int, Callable[..., None]] = {}
        """Those that are compiled already."""

    def encoder(self, version: int) -> Callable[..., None]:
        """The encoder of a version, compiled at the first use. Raises: EncodeError if the version has no such shape."""
        encoder = self.encoders.get(version)
        if encoder is None:
            source = ShapeSource(self._message, version, self._arguments, self._fields)
            exec(compile(source.text, f"<encode {self._message.__name__} version {version}>", "exec"), source.names)
            compiled: Any = source.names["encode"]
            encoder = self.encoders[version] = compiled
        return encoder


class ShapeSource(EncoderSource):
    """Source text and globals of `encode` for a shape of one message version."""

    def __init__(self, message: type[Message], version: int, arguments: str, fields: Fields) -> None:
        SourceWriter.__init__(self)
        self._begin(message, version)
        with self.block(f"def encode({arguments}, out):"):
            self._shaped(message, fields)
            self._flush()

    def _shaped(self, struct: type[Struct], fields: Fields) -> None:
        in_place, tagged, absent = fields_at(struct, self._version)
        if any(field.name in fields for field in tagged) or any(
            field.name in fields and not field.ignorable for field in absent
        ):
            raise EncodeError(f"{struct.__name__} version {self._version} has no such shape")
        for field in in_place:
            value = fields.get(field.name)
            if value is None:
                self._default(field)
            elif isinstance(value, Each):
                self._each_shaped(field, value)
            else:
                self._value(field, value, f"{struct.__name__}.{field.name}")
        if self._flexible:
            self._run.append(("x", ""))

    def _each_shaped(self, field: Field, each: Each) -> None:
        elements, size = self.local("v"), self.local("n")
        self.line(f"{elements} = {each.elements}")
        self.line(f"{size} = len({elements})" + (" + 1" if self._flexible else ""))
        self._prefix(size, self._flexible, False)
        with self.block(f"for {each.variables} in {elements}:"):
            self._shaped(cast("type[Struct]", field.element), each.fields)
            self._flush()

    def _default(self, field: Field) -> None:
        """The default of a field: a part of the run around it."""
        compact = field.flexible and self._flexible
        if field.kind is Kind.STRUCT:
            self._shaped(cast("type[Struct]", field.element), {})
        elif field.kind in (Kind.ARRAY, Kind.STRING, Kind.BYTES, Kind.RECORDS):
            length = -1 if field.default is None else 0
            code = "B" if compact else "h" if field.kind is Kind.STRING else "i"
            self._run.append((code, str(length + 1 if compact else length)))
        elif field.default:
            self._run.append((FORMATS[field.kind], repr(field.default)))
        else:
            self._run += [("x", "")] * WIDTHS[field.kind]

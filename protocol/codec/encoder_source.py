"""Generates the source of an encoder for one version of one message.

    def encode(o, out, marks): ...

appends the pieces of the encoded message `o` to the list `out`; one join then makes the bytes. Runs of fixed-width
fields are one `struct` call, together with the length prefix that follows when that fits into a byte. `marks` receives
the positions in `out` of what stays a piece of its own: record batches, which may be regions of files, and large kept
arrays.

Two encoders exist per version. The plain one leaves no room for tagged fields that this schema does not know; when it
meets one, it raises `RetainedTags`, and `codec.encode` takes the second, `retaining` one. An encoder `in_steps` is the
plain one as a generator, which yields after every `ELEMENTS_A_STEP` elements of an array.
"""

from __future__ import annotations

from struct import Struct as Layout
from struct import pack
from typing import Final, cast

from odradek.protocol.codec.arrays.kept_array import KeptArray
from odradek.protocol.codec.constructor_source import default_source
from odradek.protocol.codec.encode_error import EncodeError, RetainedTags, outside_version, wrong_uuid
from odradek.protocol.codec.limits import MAX_STRING_BYTES
from odradek.protocol.codec.schema import FRESH, Field, Kind, Message, Primitive, RawTaggedField, Struct
from odradek.protocol.codec.source_writer import ELEMENTS_A_STEP, FORMATS, SMALL_ARRAY, SourceWriter, fields_at
from odradek.protocol.codec.varint import ONE_BYTE, write_uvarint

SHARED_PIECE_BYTES: Final = 4096
"""A kept array of at least this size is not copied into a response that is encoded in steps: a response may contain the
same one many times."""


def string_prefix(size: int) -> bytes:
    """The compact length of a string that needs more than one byte. (`size` is one more than the length.)"""
    if size > MAX_STRING_BYTES + 1:
        raise EncodeError(f"a string of {size - 1} bytes is too long to be serialized")
    return write_uvarint(size)


def tagged_section(fields: list[RawTaggedField | tuple[int, bytes]]) -> bytes:
    """Known and unknown tagged fields together, by ascending tag."""
    fields.sort(key=lambda field: field[0])
    tags = {tag for tag, _ in fields}
    if len(tags) != len(fields):
        raise EncodeError("a tag appears twice among the tagged fields")
    pieces = [write_uvarint(len(fields))]
    for tag, data in fields:
        pieces += (write_uvarint(tag), write_uvarint(len(data)), data)
    return b"".join(pieces)


_GLOBALS: dict[str, object] = {
    "pack": pack,
    "one_byte": ONE_BYTE,
    "uvarint": write_uvarint,
    "string_prefix": string_prefix,
    "tagged_section": tagged_section,
    "outside_version": outside_version,
    "wrong_uuid": wrong_uuid,
    "RetainedTags": RetainedTags,
    "KeptArray": KeptArray,
    "in_memory": frozenset((bytes, memoryview, bytearray)),
}


class EncoderSource(SourceWriter):
    """Source text and globals of `encode` for one message version."""

    def __init__(
        self, message: type[Message], version: int, *, retaining: bool = False, in_steps: bool = False
    ) -> None:
        super().__init__()
        self._begin(message, version, retaining=retaining, in_steps=in_steps)
        with self.block("def encode(o, out, marks):"):
            self._struct(message, "o")
            self._flush()
            if in_steps:
                self.line("yield")  # also a message without arrays is encoded by a generator

    def _begin(self, message: type[Message], version: int, *, retaining: bool = False, in_steps: bool = False) -> None:
        self._in_steps = in_steps
        self.names.update(_GLOBALS)
        self._version = version
        self._flexible = message.FLEXIBLE_VERSIONS.covers(version)
        self._retaining = retaining
        self._run: list[tuple[str, str]] = []  # (format, expression) of the struct call being collected
        self._out = "out"

    def _struct(self, struct: type[Struct], value: str) -> None:
        in_place, tagged, absent = fields_at(struct, self._version)
        if not self._flexible or not self._retaining:
            self.line(f"if {value}.unknown_tagged_fields: raise RetainedTags")
        for field in absent:
            if not field.ignorable:
                label = f"{struct.__name__}.{field.name}"
                condition = non_default(field, f"{value}.{field.name}")
                self.line(f"if {condition}: raise outside_version({label!r}, {self._version})")
        for field in in_place:
            self._value(field, f"{value}.{field.name}", f"{struct.__name__}.{field.name}")
        if self._flexible:
            self._tagged_section(struct, value, tagged)

    def _value(self, field: Field, source: str, label: str) -> None:
        nullable = field.nullable.covers(self._version)
        if field.kind is Kind.STRUCT:
            self._struct_value(cast("type[Struct]", field.element), nullable, source)
        elif field.kind is Kind.ARRAY:
            self._array(field, nullable, source, label)
        else:
            self._primitive(field.kind, nullable, field.flexible and self._flexible, source, label)

    def _primitive(self, kind: Kind, nullable: bool, compact: bool, source: str, label: str) -> None:
        if kind is Kind.UUID:
            value = self.local("v")
            self.line(f"{value} = {source}")
            self.line(f"if len({value}) != 16: raise wrong_uuid({label!r})")
            self._run.append(("16s", value))
        elif kind in FORMATS:
            self._run.append((FORMATS[kind], source))
        elif kind is Kind.RECORDS:
            self._records(compact, nullable, source)
        else:
            self._bytes(kind, nullable, compact, source)

    def _bytes(self, kind: Kind, nullable: bool, compact: bool, source: str) -> None:
        value, size = self.local("v"), self.local("n")
        encode = ".encode()" if kind is Kind.STRING else ""
        length = f"len({value}) + 1" if compact else f"len({value})"
        if nullable and not self._run:  # nothing to join a null with
            null = b"\0" if compact else b"\xff" * (2 if kind is Kind.STRING else 4)
            self.line(f"{value} = {source}")
            with self.block(f"if {value} is None:"):
                self.line(f"{self._out}.append({null!r})")
            with self.block("else:"):
                if encode:
                    self.line(f"{value} = {value}{encode}")
                self.line(f"{size} = {length}")
                self._prefix(size, compact, kind is Kind.STRING)
                self.line(f"{self._out}.append({value})")
            return
        if nullable:
            self.line(f"{value} = {source}")
            with self.block(f"if {value} is None:"):
                self.line(f"{value} = b''")
                self.line(f"{size} = {0 if compact else -1}")
            with self.block("else:"):
                if encode:
                    self.line(f"{value} = {value}{encode}")
                self.line(f"{size} = {length}")
        else:
            self.line(f"{value} = {source}{encode}")
            self.line(f"{size} = {length}")
        self._prefix(size, compact, kind is Kind.STRING)
        self.line(f"{self._out}.append({value})")

    def _records(self, compact: bool, nullable: bool, source: str) -> None:
        value, size = self.local("v"), self.local("n")
        self.line(f"{value} = {source}")
        if nullable:
            with self.block(f"if {value} is None:"):
                self.line(f"{size} = {-1}")
            with self.block("else:"):
                self.line(f"{size} = len({value}) if type({value}) in in_memory else {value}.size_in_bytes")
        else:
            self.line(f"{size} = len({value}) if type({value}) in in_memory else {value}.size_in_bytes")
        if compact:
            self.line(f"{size} += 1")
        self._prefix(size, compact, False)
        with self.block(f"if {size} > {1 if compact else 0}:"):
            self.line(f"marks.append(len({self._out}))")
            self.line(f"{self._out}.append({value})")

    def _prefix(self, size: str, compact: bool, is_string: bool) -> None:
        """Close the run with a length or count that is in the local `size` (already one too high when compact)."""
        if not compact:
            self._run.append(("h" if is_string else "i", size))
            self._flush()
            return
        run = self._run
        self._run = [*run, ("B", size)]
        with self.block(f"if {size} < 128:"):
            self._flush()
        self._run = run
        with self.block("else:"):
            self._flush()
            self.line(f"{self._out}.append({'string_prefix' if is_string else 'uvarint'}({size}))")

    def _struct_value(self, struct: type[Struct], nullable: bool, source: str) -> None:
        value = self.local("v")
        self.line(f"{value} = {source}")
        if not nullable:
            self._struct(struct, value)
            return
        self._flush()
        with self.block(f"if {value} is None:"):
            self.line(f"{self._out}.append(b'\\xff')")
        with self.block("else:"):
            self._run.append(("b", "1"))
            self._struct(struct, value)
            self._flush()

    def _array(self, field: Field, nullable: bool, source: str, label: str) -> None:
        value, size = self.local("v"), self.local("n")
        self.line(f"{value} = {source}")
        length = f"len({value}) + 1" if self._flexible else f"len({value})"
        if nullable:
            with self.block(f"if {value} is None:"):
                self.line(f"{value} = ()")
                self.line(f"{size} = {0 if self._flexible else -1}")
            with self.block("else:"):
                self.line(f"{size} = {length}")
        else:
            self.line(f"{size} = {length}")
        self._prefix(size, self._flexible, False)
        element = cast("Primitive[object] | type[Struct]", field.element)
        if isinstance(element, Primitive) and element.kind in FORMATS and element.kind is not Kind.UUID:
            self._numbers(FORMATS[element.kind], value, size)
            return
        if field.kept and not self._retaining:
            self._kept(cast("type[Struct]", element), value, size, repeated=field.repeated)
            return
        item = self.local("o")
        with self.block(self._each(item, value, size)):
            if isinstance(element, Primitive):
                self._primitive(element.kind, False, self._flexible, item, label)
            else:
                self._struct(element, item)
            self._flush()
            if self._in_steps:
                self.line(f"if not {size} % {ELEMENTS_A_STEP}: yield")

    def _each(self, item: str, value: str, size: str) -> str:
        return f"for {size}, {item} in enumerate({value}, 1):" if self._in_steps else f"for {item} in {value}:"

    def _kept(self, struct: type[Struct], value: str, size: str, *, repeated: bool) -> None:
        """The elements as one piece, the same as the last time if they are a `KeptArray`. Each step joins its own."""
        data, pieces, item = self.local("data"), self.local("pieces"), self.local("o")
        outer = self._out
        self.line(f"{data} = {value}.encoded({self._version}) if type({value}) is KeptArray else None")
        with self.block(f"if {data} is None:"):
            self._out = self.local("out")
            self.line(f"{pieces} = []")
            self.line(f"{self._out} = []")
            with self.block(self._each(item, value, size)):
                self._struct(struct, item)
                self._flush()
                if self._in_steps:
                    with self.block(f"if not {size} % {ELEMENTS_A_STEP}:"):
                        self.line(f"{pieces}.append(b''.join({self._out}))")
                        self.line(f"{self._out}.clear()")
                        self.line("yield")
            self.line(f"{data} = b''.join({pieces} + {self._out})")
            self.line(f"if type({value}) is KeptArray: {value}.keep({self._version}, {data})")
        self._out = outer
        if repeated and self._in_steps and self._out == "out":
            self.line(f"if len({data}) >= {SHARED_PIECE_BYTES}: marks.append(len(out))")
        self.line(f"{self._out}.append({data})")

    def _numbers(self, code: str, value: str, size: str) -> None:
        small = self.bind("small", code, tuple(Layout(f">{n}{code}").pack for n in range(SMALL_ARRAY + 1)))
        count = self.local("n")
        self.line(f"{count} = len({value})")
        self.line(
            f"{self._out}.append({small}[{count}](*{value}) if {count} <= {SMALL_ARRAY} "
            f"else pack('>%d{code}' % {count}, *{value}))"
        )

    def _tagged_section(self, struct: type[Struct], value: str, tagged: list[Field]) -> None:
        if self._retaining:
            self._merged_section(struct, value, tagged)
        elif not tagged:
            self._run.append(("x", ""))  # a pad byte: a count of zero
        else:
            self._known_section(struct, value, tagged)

    def _known_section(self, struct: type[Struct], value: str, tagged: list[Field]) -> None:
        """Two passes: count the fields that differ from their defaults, then write them, each behind its size."""
        present = []
        count = self.local("t")
        self.line(f"{count} = 0")
        for field in tagged:
            flag = self.local("p")
            present.append(flag)
            found = f"{value}.{field.name}"
            if field.kind is Kind.STRUCT:  # its fields are compared one by one
                found = self.local("v")
                self.line(f"{found} = {value}.{field.name}")
            with self.block(f"if {non_default(field, found)}:"):
                self.line(f"{flag} = True")
                self.line(f"{count} += 1")
            with self.block("else:"):
                self.line(f"{flag} = False")
        self._run.append(("B", count))
        self._flush()
        with self.block(f"if {count}:"):
            for field, flag in zip(tagged, present, strict=True):
                with self.block(f"if {flag}:"):
                    data = self._tagged_value(struct, value, field)
                    self.line(f"{self._out} += (uvarint({field.tag}), uvarint(len({data})), {data})")

    def _merged_section(self, struct: type[Struct], value: str, tagged: list[Field]) -> None:
        self._flush()
        section = self.local("s")
        self.line(f"{section} = list({value}.unknown_tagged_fields or ())")
        for field in tagged:
            with self.block(f"if {non_default(field, f'{value}.{field.name}')}:"):
                data = self._tagged_value(struct, value, field)
                self.line(f"{section}.append(({field.tag}, {data}))")
        self.line(f"{self._out}.append(tagged_section({section}))")

    def _tagged_value(self, struct: type[Struct], value: str, field: Field) -> str:
        """Encode one tagged field into bytes of its own, in the local whose name is returned."""
        outer, self._out = self._out, self.local("out")
        self.line(f"{self._out} = []")
        self._value(field, f"{value}.{field.name}", f"{struct.__name__}.{field.name}")
        self._flush()
        data = self.local("data")
        self.line(f"{data} = b''.join({self._out})")
        self._out = outer
        return data

    def _flush(self) -> None:
        """Close the run: one struct call for all that was collected."""
        run, self._run = self._run, []
        if not run:
            return
        if all(code == "x" for code, _ in run):
            self.line(f"{self._out}.append({bytes(len(run))!r})")
            return
        if len(run) == 1 and run[0][0] == "B":
            self.line(f"{self._out}.append(one_byte[{run[0][1]}])")
            return
        layout = Layout(">" + "".join(code for code, _ in run))
        write = self.bind("write", layout.format, layout.pack)
        arguments = ", ".join(expression for code, expression in run if code != "x")
        self.line(f"{self._out}.append({write}({arguments}))")


def non_default(field: Field, value: str) -> str:
    """Source of the condition that `value` is not the default of the field."""
    if field.kind is Kind.STRUCT and field.default is FRESH:
        struct = cast("type[Struct]", field.element)
        conditions = [non_default(part, f"{value}.{part.name}") for part in struct.FIELDS]
        return f"({' or '.join([*conditions, f'{value}.unknown_tagged_fields'])})"
    if field.default is None:
        return f"{value} is not None"
    if field.kind is Kind.ARRAY:
        return f"({value} or {value} is None)"
    if field.kind is Kind.BOOL:
        return f"not {value}" if field.default else value
    return f"{value} != {default_source(field)}"

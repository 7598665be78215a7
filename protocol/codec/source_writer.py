"""Writing Python source: what the generators of decoders and encoders have in common.

Generated functions refer to classes, precompiled `struct` methods and error constructors by short global names; the
writer keeps that table, and reuses a name when the same object is bound again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from odradek.protocol.codec.field import Field, Kind, Primitive, StructType

SMALL_ARRAY = 16
"""Arrays of numbers up to this length (replicas, ISRs) are read and written with a layout made in advance."""

ELEMENTS_A_STEP = 16
"""Elements of an array that are decoded or encoded in one step; those of arrays inside them count by themselves."""

PACKED_ABOVE = 1_024
"""Elements of a `packed` array. As objects they would have about 100 KB."""

FORMATS = {
    Kind.BOOL: "?",
    Kind.INT8: "b",
    Kind.INT16: "h",
    Kind.UINT16: "H",
    Kind.INT32: "i",
    Kind.UINT32: "I",
    Kind.INT64: "q",
    Kind.FLOAT64: "d",
    Kind.UUID: "16s",
}
"""The `struct` formats of the types with a fixed width."""

WIDTHS = {
    Kind.BOOL: 1,
    Kind.INT8: 1,
    Kind.INT16: 2,
    Kind.UINT16: 2,
    Kind.INT32: 4,
    Kind.UINT32: 4,
    Kind.INT64: 8,
    Kind.FLOAT64: 8,
    Kind.UUID: 16,
}


class SourceWriter:
    """Lines of source with indentation, unique local names, and the globals the source needs."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {}
        self._lines: list[str] = []
        self._indent = ""
        self._locals = 0
        self._bound: dict[tuple[str, object], str] = {}

    def line(self, text: str) -> None:
        self._lines.append(self._indent + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """`header` and, indented under it, everything written inside the `with`."""
        self.line(header)
        outer, self._indent = self._indent, self._indent + "    "
        yield
        self._indent = outer

    def local(self, stem: str) -> str:
        """A local name used nowhere else in the function."""
        self._locals += 1
        return f"{stem}{self._locals}"

    def bind(self, stem: str, key: object, value: object) -> str:
        """A global name for `value`; equal keys share one."""
        name = self._bound.get((stem, key))
        if name is None:
            name = f"{stem}{len(self._bound)}"
            self._bound[stem, key] = name
            self.names[name] = value
        return name

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def fields_at(struct: StructType, version: int) -> tuple[list[Field], list[Field], list[Field]]:
    """The fields of a struct in one version: in place, tagged (by ascending tag), and absent."""
    in_place, tagged, absent = [], [], []
    for field in struct.FIELDS:
        if field.tagged.covers(version):
            tagged.append(field)
        elif field.versions.covers(version):
            in_place.append(field)
        else:
            absent.append(field)
    tagged.sort(key=lambda field: field.tag or 0)
    return in_place, tagged, absent


def holds_records(struct: StructType, version: int) -> bool:
    """Whether a message of this version can carry record batches."""
    in_place, tagged, _ = fields_at(struct, version)
    for field in in_place + tagged:
        if field.kind is Kind.RECORDS:
            return True
        element = field.element
        if element is not None and not isinstance(element, Primitive) and holds_records(element, version):
            return True
    return False

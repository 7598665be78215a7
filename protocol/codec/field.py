"""What one field of a message is: its wire type, and the versions in which it exists, may be null, or is tagged.

Version ranges are in the notation of Kafka's message definitions ("3", "0-12", "5+", "none"), so that the two can be
compared by eye. Kafka: FieldSpec, FieldType and Versions, of the message generator.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from odradek.protocol.codec.primitives import ZERO_UUID

T = TypeVar("T")
MAX_VERSION = 32767


class RecordsRegion(Protocol):
    """Records that are not in memory: a region of a file, which the connection hands to the kernel."""

    @property
    def size_in_bytes(self) -> int: ...


BYTES_TYPES: Final = (bytes, memoryview, bytearray)
"""For `isinstance`: a union in its place would be built anew by each call."""

Records = memoryview | bytes | bytearray | RecordsRegion
"""What a field of records may hold. The decoder always leaves a memoryview into the buffer it was given."""


class VersionRange(NamedTuple):
    """Versions `first` to `last`, both included; empty when last < first."""

    first: int
    last: int

    @staticmethod
    def parse(text: str) -> VersionRange:
        """Read Kafka's notation: "3", "0-12", "5+" or "none"."""
        if text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return VersionRange(int(text[:-1]), MAX_VERSION)
        first, dash, last = text.partition("-")
        return VersionRange(int(first), int(last if dash else first))

    def covers(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __str__(self) -> str:
        if self.last < self.first:
            return "none"
        if self.last == MAX_VERSION:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


NO_VERSIONS = VersionRange(0, -1)


class Kind(IntEnum):
    """The wire types. Their encodings are in `codec.py`."""

    BOOL = 0
    INT8 = 1
    INT16 = 2
    UINT16 = 3
    INT32 = 4
    UINT32 = 5
    INT64 = 6
    FLOAT64 = 7
    UUID = 8
    STRING = 9
    BYTES = 10
    RECORDS = 11
    STRUCT = 12
    ARRAY = 13


class Primitive(Generic[T]):
    """A wire type without parts, usable as the element of an array."""

    __slots__ = ("default", "kind", "name")

    def __init__(self, kind: Kind, name: str, default: T) -> None:
        self.kind = kind
        self.name = name
        self.default = default

    def __repr__(self) -> str:
        return self.name


BOOL = Primitive(Kind.BOOL, "bool", False)
INT8 = Primitive(Kind.INT8, "int8", 0)
INT16 = Primitive(Kind.INT16, "int16", 0)
UINT16 = Primitive(Kind.UINT16, "uint16", 0)
INT32 = Primitive(Kind.INT32, "int32", 0)
UINT32 = Primitive(Kind.UINT32, "uint32", 0)
INT64 = Primitive(Kind.INT64, "int64", 0)
FLOAT64 = Primitive(Kind.FLOAT64, "float64", 0.0)
UUID = Primitive(Kind.UUID, "uuid", ZERO_UUID)
STRING = Primitive(Kind.STRING, "string", "")
BYTES = Primitive(Kind.BYTES, "bytes", b"")
RECORDS = Primitive(Kind.RECORDS, "records", None)


class RawTaggedField(NamedTuple):
    """A tagged field this schema does not know, kept as it came so that it can be sent on."""

    tag: int
    data: bytes


class StructType(type):
    """What fields and constructors need of a struct class. The classes are made by `schema.StructMeta`."""

    FIELDS: tuple[Field, ...]


class Field:
    """One declared field. `element` is the struct class or the primitive of a STRUCT or ARRAY field."""

    __slots__ = (
        "default",
        "element",
        "flexible",
        "ignorable",
        "kept",
        "kind",
        "name",
        "nullable",
        "packed",
        "repeated",
        "tag",
        "tagged",
        "versions",
    )

    def __init__(
        self,
        kind: Kind,
        versions: str,
        default: object,
        *,
        element: Primitive[object] | StructType | None = None,
        nullable: str | None = None,
        ignorable: bool = False,
        tag: int | None = None,
        tagged: str | None = None,
        flexible: bool = True,
        kept: bool = False,
        repeated: bool = False,
        packed: bool = False,
    ) -> None:
        self.name = ""  # set when the class is made that declares it
        self.kind = kind
        self.versions = VersionRange.parse(versions)
        self.default = default
        self.element = element
        self.nullable = NO_VERSIONS if nullable is None else VersionRange.parse(nullable)
        self.ignorable = ignorable
        self.tag = tag
        self.tagged = NO_VERSIONS if tagged is None else VersionRange.parse(tagged)
        self.flexible = flexible  # False: keeps the classic encoding in flexible versions
        self.kept = kept  # the elements of a KeptArray are encoded once for each version
        self.packed = packed  # a long one is decoded in steps to a PackedArray, or to an array of numbers
        self.repeated = repeated  # a large KeptArray is not copied into a message that is encoded in steps

    @property
    def wire_type(self) -> str:
        """The type in the notation of Kafka's message definitions: `int32`, `[]string`, `[]TopicData`."""
        if self.element is None:
            return self.kind.name.lower()
        name = self.element.name if isinstance(self.element, Primitive) else self.element.__name__
        return f"[]{name}" if self.kind is Kind.ARRAY else name

    def __repr__(self) -> str:
        return f"<{self.name}: {self.wire_type} {self.versions}>"


class Fresh:
    """The default of fields whose real default is a new object each time: an empty list, or a struct of defaults."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "..."


FRESH = Fresh()

"""How a message of the protocol is declared: typed classes whose fields carry version ranges.

A message is one class for all its versions, as in Apache Kafka's message definitions:

    class PartitionProduceData(Struct):
        index: int = int32("0+")
        records: Records | None = record_set("0+", nullable="0+")

    class ProduceRequest(Request, key=0, versions="0-11", flexible="9+"):
        topic_data: list[TopicProduceData] = array(TopicProduceData, "0+")

The metaclass collects the field declarations, in wire order, into `FIELDS` and turns them into slots; instances are
mutable, built from keywords, compare by value, and every field starts with Kafka's default. The declaration functions
claim to return the value type, so that a type checker sees an ordinary dataclass. Nothing is compiled when a class is
created (start-up imports many of them): the constructor is generated on first use, and so are the codecs (`codec.py`).

Rules that the codec enforces: a field exists on the wire only in its `versions`; a value other than the default in any
other version is refused unless the field is `ignorable`; None is allowed in `nullable` versions only; a field with a
`tag` travels in the tagged section in its `tagged` versions, and is left out when it equals its default.

Answers to Kafka's generated message classes (`org.apache.kafka.common.message`) and `ApiMessage`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar, cast, dataclass_transform, overload

from odradek.protocol.limits import MAX_DECODED_VALUES
from odradek.protocol.primitives import ZERO_UUID

T = TypeVar("T")
MAX_VERSION = 32767


class RecordsRegion(Protocol):
    """Records that are not in memory: a region of a file, which the connection hands to the kernel."""

    @property
    def size_in_bytes(self) -> int: ...


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


class Field:
    """One declared field. `element` is the struct class or the primitive of a STRUCT or ARRAY field."""

    __slots__ = ("default", "element", "flexible", "ignorable", "kind", "name", "nullable", "tag", "tagged", "versions")

    def __init__(
        self,
        kind: Kind,
        versions: str,
        default: object,
        *,
        element: Primitive[object] | type[Struct] | None = None,
        nullable: str | None = None,
        ignorable: bool = False,
        tag: int | None = None,
        tagged: str | None = None,
        flexible: bool = True,
    ) -> None:
        self.name = ""  # set by StructMeta
        self.kind = kind
        self.versions = VersionRange.parse(versions)
        self.default = default
        self.element = element
        self.nullable = NO_VERSIONS if nullable is None else VersionRange.parse(nullable)
        self.ignorable = ignorable
        self.tag = tag
        self.tagged = NO_VERSIONS if tagged is None else VersionRange.parse(tagged)
        self.flexible = flexible  # False: keeps the classic encoding in flexible versions

    @property
    def wire_type(self) -> str:
        """The type in the notation of Kafka's message definitions: `int32`, `[]string`, `[]TopicData`."""
        if self.kind is Kind.ARRAY or self.kind is Kind.STRUCT:
            element = cast("Primitive[object] | type[Struct]", self.element)
            name = element.name if isinstance(element, Primitive) else element.__name__
            return f"[]{name}" if self.kind is Kind.ARRAY else name
        return self.kind.name.lower()

    def __repr__(self) -> str:
        return f"<{self.name}: {self.wire_type} {self.versions}>"


@dataclass_transform(kw_only_default=True)
class StructMeta(type):
    """Turns the declared fields of a class body into `FIELDS` and slots."""

    FIELDS: tuple[Field, ...]

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, object], **header: str | int
    ) -> StructMeta:
        fields = []
        for attribute, value in list(namespace.items()):
            if isinstance(value, Field):
                value.name = attribute
                fields.append(value)
                del namespace[attribute]
        namespace.setdefault("__slots__", tuple(field.name for field in fields))
        namespace["FIELDS"] = tuple(fields)
        namespace["DECODERS"] = {}
        namespace["ENCODERS"] = {}
        if "versions" in header:
            namespace["VERSIONS"] = VersionRange.parse(str(header["versions"]))
            namespace["FLEXIBLE_VERSIONS"] = VersionRange.parse(str(header["flexible"]))
        if "key" in header:
            namespace["API_KEY"] = int(header["key"])
        if "max_values" in header:
            namespace["MAX_VALUES"] = int(header["max_values"])
        return super().__new__(mcs, name, bases, namespace)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, object], **header: str | int) -> None:
        super().__init__(name, bases, namespace)


class Struct(metaclass=StructMeta):
    """A value with fields; in flexible versions also the tagged fields unknown here (None: there were none)."""

    __slots__ = ("unknown_tagged_fields",)

    FIELDS: ClassVar[tuple[Field, ...]]
    DECODERS: ClassVar[dict[int, Callable[..., object]]]
    ENCODERS: ClassVar[dict[int, Callable[..., object]]]
    unknown_tagged_fields: ClassVar[list[RawTaggedField] | None]  # a slot; ClassVar keeps it out of the constructor

    def __init__(self, **values: object) -> None:
        """Replaced by a constructor made for the class when the first instance is built."""
        compile_constructor(type(self))
        type(self).__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self.unknown_tagged_fields, other.unknown_tagged_fields
        return all(getattr(self, f.name) == getattr(other, f.name) for f in self.FIELDS) and (
            (mine or None) == (theirs or None)
        )

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        values = [f"{field.name}={getattr(self, field.name)!r}" for field in self.FIELDS]
        if self.unknown_tagged_fields:
            values.append(f"unknown_tagged_fields={self.unknown_tagged_fields!r}")
        return f"{type(self).__name__}({', '.join(values)})"


class Message(Struct):
    """A struct that is encoded on its own, in one of `VERSIONS`."""

    __slots__ = ()

    VERSIONS: ClassVar[VersionRange]
    FLEXIBLE_VERSIONS: ClassVar[VersionRange]
    MAX_VALUES: ClassVar[int] = MAX_DECODED_VALUES


class Request(Message):
    """The body of a request of the API `API_KEY`."""

    __slots__ = ()

    API_KEY: ClassVar[int]


class Response(Message):
    """The body of a response of the API `API_KEY`."""

    __slots__ = ()

    API_KEY: ClassVar[int]


def constructor_lines(fields: tuple[Field, ...], target: str, names: dict[str, object]) -> list[str]:
    """Statements that give `target` the default of every field; objects they need are put into `names`."""
    lines = [f"{target}.unknown_tagged_fields = None"]
    for field in fields:
        if field.kind is Kind.STRUCT and field.default is ABSENT:
            struct = cast("type[Struct]", field.element)
            names[struct.__name__] = struct
            nested = f"{target.rpartition('.')[2]}_{field.name}"
            lines.append(f"{nested} = new({struct.__name__})")
            lines += constructor_lines(struct.FIELDS, nested, names)
            lines.append(f"{target}.{field.name} = {nested}")
        else:
            lines.append(f"{target}.{field.name} = {default_source(field)}")
    return lines


def default_source(field: Field) -> str:
    """Source text of the default of a field that is not a struct with defaults of its own."""
    if field.default is ABSENT:
        return "[]"
    return repr(field.default)


def compile_constructor(struct: type[Struct]) -> None:
    """Give a class an `__init__` that takes its fields as keywords; about six times faster than a loop over FIELDS."""
    names: dict[str, object] = {"new": object.__new__, "absent": ABSENT}
    parameters, body = [], ["self.unknown_tagged_fields = None"]
    for field in struct.FIELDS:
        name = field.name
        if field.default is ABSENT:
            parameters.append(f"{name}=absent")
            body.append(f"if {name} is absent:")
            if field.kind is Kind.ARRAY:
                body.append(f"    {name} = []")
            else:
                nested = cast("type[Struct]", field.element)
                names[nested.__name__] = nested
                body.append(f"    {name} = new({nested.__name__})")
                body += ["    " + line for line in constructor_lines(nested.FIELDS, name, names)]
        else:
            parameters.append(f"{name}={default_source(field)}")
        body.append(f"self.{name} = {name}")
    signature = f"self, *, {', '.join(parameters)}" if parameters else "self"
    source = f"def __init__({signature}):\n    " + "\n    ".join(body) + "\n"
    exec(compile(source, f"<constructor of {struct.__name__}>", "exec"), names)
    constructor = cast("Callable[..., None]", names["__init__"])
    constructor.__qualname__ = f"{struct.__qualname__}.__init__"
    type.__setattr__(struct, "__init__", constructor)


class _Absent:
    """The default of parameters whose real default is a new object each time."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "..."


ABSENT = _Absent()


S = TypeVar("S", bound=Struct)


def boolean(
    versions: str, *, default: bool = False, ignorable: bool = False, tag: int | None = None, tagged: str | None = None
) -> bool:
    return cast("bool", Field(Kind.BOOL, versions, default, ignorable=ignorable, tag=tag, tagged=tagged))


def int8(
    versions: str, *, default: int = 0, ignorable: bool = False, tag: int | None = None, tagged: str | None = None
) -> int:
    return cast("int", Field(Kind.INT8, versions, default, ignorable=ignorable, tag=tag, tagged=tagged))


def int16(
    versions: str, *, default: int = 0, ignorable: bool = False, tag: int | None = None, tagged: str | None = None
) -> int:
    return cast("int", Field(Kind.INT16, versions, default, ignorable=ignorable, tag=tag, tagged=tagged))


def uint16(
    versions: str, *, default: int = 0, ignorable: bool = False, tag: int | None = None, tagged: str | None = None
) -> int:
    return cast("int", Field(Kind.UINT16, versions, default, ignorable=ignorable, tag=tag, tagged=tagged))


def int32(
    versions: str, *, default: int = 0, ignorable: bool = False, tag: int | None = None, tagged: str | None = None
) -> int:
    return cast("int", Field(Kind.INT32, versions, default, ignorable=ignorable, tag=tag, tagged=tagged))


def uint32(
    versions: str, *, default: int = 0, ignorable: bool = False, tag: int | None = None, tagged: str | None = None
) -> int:
    return cast("int", Field(Kind.UINT32, versions, default, ignorable=ignorable, tag=tag, tagged=tagged))


def int64(
    versions: str, *, default: int = 0, ignorable: bool = False, tag: int | None = None, tagged: str | None = None
) -> int:
    return cast("int", Field(Kind.INT64, versions, default, ignorable=ignorable, tag=tag, tagged=tagged))


def float64(
    versions: str, *, default: float = 0.0, ignorable: bool = False, tag: int | None = None, tagged: str | None = None
) -> float:
    return cast("float", Field(Kind.FLOAT64, versions, default, ignorable=ignorable, tag=tag, tagged=tagged))


def uuid(
    versions: str,
    *,
    default: bytes = ZERO_UUID,
    ignorable: bool = False,
    tag: int | None = None,
    tagged: str | None = None,
) -> bytes:
    return cast("bytes", Field(Kind.UUID, versions, default, ignorable=ignorable, tag=tag, tagged=tagged))


@overload
def string(
    versions: str, *, default: str = ..., ignorable: bool = ..., tag: int | None = ..., tagged: str | None = ...
) -> str: ...
@overload
def string(
    versions: str,
    *,
    nullable: str,
    default: str | None = ...,
    ignorable: bool = ...,
    tag: int | None = ...,
    tagged: str | None = ...,
    flexible: str | None = ...,
) -> str | None: ...
def string(
    versions: str,
    *,
    nullable: str | None = None,
    default: str | None = "",
    ignorable: bool = False,
    tag: int | None = None,
    tagged: str | None = None,
    flexible: str | None = None,
) -> str | None:
    field = Field(
        Kind.STRING,
        versions,
        default,
        nullable=nullable,
        ignorable=ignorable,
        tag=tag,
        tagged=tagged,
        flexible=flexible != "none",
    )
    return cast("str | None", field)


@overload
def byte_string(
    versions: str, *, default: bytes = ..., ignorable: bool = ..., tag: int | None = ..., tagged: str | None = ...
) -> bytes: ...
@overload
def byte_string(
    versions: str,
    *,
    nullable: str,
    default: bytes | None = ...,
    ignorable: bool = ...,
    tag: int | None = ...,
    tagged: str | None = ...,
) -> bytes | None: ...
def byte_string(
    versions: str,
    *,
    nullable: str | None = None,
    default: bytes | None = b"",
    ignorable: bool = False,
    tag: int | None = None,
    tagged: str | None = None,
) -> bytes | None:
    field = Field(Kind.BYTES, versions, default, nullable=nullable, ignorable=ignorable, tag=tag, tagged=tagged)
    return cast("bytes | None", field)


def record_set(versions: str, *, nullable: str) -> Records | None:
    """Record batches, passed through as bytes. Null where a message leaves the field at its default."""
    return cast("Records | None", Field(Kind.RECORDS, versions, None, nullable=nullable))


@overload
def struct(
    element: type[S], versions: str, *, ignorable: bool = ..., tag: int | None = ..., tagged: str | None = ...
) -> S: ...
@overload
def struct(
    element: type[S],
    versions: str,
    *,
    nullable: str,
    default: None,
    ignorable: bool = ...,
    tag: int | None = ...,
    tagged: str | None = ...,
) -> S | None: ...
def struct(
    element: type[S],
    versions: str,
    *,
    nullable: str | None = None,
    default: _Absent | None = ABSENT,
    ignorable: bool = False,
    tag: int | None = None,
    tagged: str | None = None,
) -> S | None:
    """A struct inside a struct; its default is one with the defaults of its own fields."""
    field = Field(
        Kind.STRUCT, versions, default, element=element, nullable=nullable, ignorable=ignorable, tag=tag, tagged=tagged
    )
    return cast("S | None", field)


@overload
def array(
    element: type[T] | Primitive[T],
    versions: str,
    *,
    ignorable: bool = ...,
    tag: int | None = ...,
    tagged: str | None = ...,
) -> list[T]: ...
@overload
def array(
    element: type[T] | Primitive[T],
    versions: str,
    *,
    nullable: str,
    default: _Absent | None = ...,
    ignorable: bool = ...,
    tag: int | None = ...,
    tagged: str | None = ...,
) -> list[T] | None: ...
def array(
    element: type[T] | Primitive[T],
    versions: str,
    *,
    nullable: str | None = None,
    default: _Absent | None = ABSENT,
    ignorable: bool = False,
    tag: int | None = None,
    tagged: str | None = None,
) -> list[T] | None:
    """A list of structs or primitives; its default is an empty one unless `default=None`."""
    field = Field(
        Kind.ARRAY,
        versions,
        default,
        element=cast("Primitive[object] | type[Struct]", element),
        nullable=nullable,
        ignorable=ignorable,
        tag=tag,
        tagged=tagged,
    )
    return cast("list[T] | None", field)

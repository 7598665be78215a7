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
created (start-up imports many of them): the constructor is generated on first use (`constructor_source.py`), and so are
the codecs (`codec.py`).

Rules that the codec enforces: a field exists on the wire only in its `versions`; a value other than the default in any
other version is refused unless the field is `ignorable`; None is allowed in `nullable` versions only; a field with a
`tag` travels in the tagged section in its `tagged` versions, and is left out when it equals its default.

Kafka: ApiMessage, and the generated classes of org.apache.kafka.common.message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar, cast, dataclass_transform, overload

from odradek.protocol.codec.constructor_source import compile_constructor
from odradek.protocol.codec.field import (
    BOOL,
    BYTES,
    BYTES_TYPES,
    FLOAT64,
    FRESH,
    INT8,
    INT16,
    INT32,
    INT64,
    MAX_VERSION,
    RECORDS,
    STRING,
    UINT16,
    UINT32,
    UUID,
    Field,
    Fresh,
    Kind,
    Primitive,
    RawTaggedField,
    Records,
    RecordsRegion,
    StructType,
    VersionRange,
)
from odradek.protocol.codec.limits import MAX_DECODED_VALUES
from odradek.protocol.codec.primitives import ZERO_UUID

__all__ = [
    "BOOL",
    "BYTES",
    "FLOAT64",
    "FRESH",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "MAX_VERSION",
    "RECORDS",
    "STRING",
    "UINT16",
    "UINT32",
    "UUID",
    "Field",
    "Kind",
    "Message",
    "Primitive",
    "RawTaggedField",
    "Records",
    "RecordsRegion",
    "Request",
    "Response",
    "Struct",
    "VersionRange",
    "array",
    "boolean",
    "byte_string",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "record_set",
    "string",
    "struct",
    "uint16",
    "uint32",
    "uuid",
]

T = TypeVar("T")


@dataclass_transform(kw_only_default=True)
class StructMeta(StructType):
    """Turns the declared fields of a class body into `FIELDS` and slots."""

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
        for field in self.FIELDS:
            if getattr(self, field.name) != getattr(other, field.name):
                return False
        mine, theirs = self.unknown_tagged_fields, other.unknown_tagged_fields
        return (mine or None) == (theirs or None)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        values = [f"{field.name}={_shown(field, getattr(self, field.name))}" for field in self.FIELDS]
        if self.unknown_tagged_fields:
            values.append(f"unknown_tagged_fields={self.unknown_tagged_fields!r}")
        return f"{type(self).__name__}({', '.join(values)})"


def _shown(field: Field, value: object) -> str:
    """Records and bytes by their size only: they can be large, and some are secrets."""
    if value is None or field.kind not in (Kind.BYTES, Kind.RECORDS):
        return repr(value)
    records = cast("Records", value)
    size = len(records) if isinstance(records, BYTES_TYPES) else records.size_in_bytes
    return f"<{size} bytes>"


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
    default: Fresh | None = FRESH,
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
    kept: bool = ...,
    repeated: bool = ...,
    packed: bool = ...,
) -> list[T]: ...
@overload
def array(
    element: type[T] | Primitive[T],
    versions: str,
    *,
    nullable: str,
    default: Fresh | None = ...,
    ignorable: bool = ...,
    tag: int | None = ...,
    tagged: str | None = ...,
    packed: bool = ...,
) -> list[T] | None: ...
def array(
    element: type[T] | Primitive[T],
    versions: str,
    *,
    nullable: str | None = None,
    default: Fresh | None = FRESH,
    ignorable: bool = False,
    tag: int | None = None,
    tagged: str | None = None,
    kept: bool = False,
    repeated: bool = False,
    packed: bool = False,
) -> list[T] | None:
    """A list of structs or primitives; its default is an empty one unless `default=None`.

    `kept`: structs without records, which are encoded once for each version when the list is a `KeptArray`.
    `repeated`: a message may contain one such list many times; a large one is not copied into it.
    `packed`: numbers or structs that handlers read in passes: of a large request a long one is a `PackedArray` or an
    array of numbers, to be declared as a `Sequence`.
    """
    field = Field(
        Kind.ARRAY,
        versions,
        default,
        element=cast("Primitive[object] | StructType", element),
        nullable=nullable,
        ignorable=ignorable,
        tag=tag,
        tagged=tagged,
        kept=kept,
        repeated=repeated,
        packed=packed,
    )
    return cast("list[T] | None", field)

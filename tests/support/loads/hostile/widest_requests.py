"""Requests of one megabyte that need most work: each array of each schema as long as fits, and false counts."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from odradek.protocol.api import API, ApiSpec
from odradek.protocol.codec.codec import encode
from odradek.protocol.codec.primitives import UUID_SIZE
from odradek.protocol.codec.schema import Field, Kind, Primitive, Request, Struct
from odradek.protocol.headers import RequestHeader, encode_request
from tests.support.wire.mutated_frames import OF_THE_CONTROLLER

LARGEST_BYTES: Final = 1 << 20
HEADER_BYTES: Final = 100
TOPIC_RESOURCE: Final = 2


@dataclass(frozen=True, slots=True)
class WideArray:
    """An array of a version of an API, and the request in which it is as long as fits."""

    spec: ApiSpec
    version: int
    path: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.spec.name} v{self.version} {'.'.join(self.path)}"

    @property
    def is_nested(self) -> bool:
        """Whether its elements have arrays."""
        return self._request(1, differ=True, inner=0) != self._request(1, differ=True, inner=1)

    def frame(self, *, differ: bool = False, inner: int = 0, largest_bytes: int = LARGEST_BYTES) -> bytes:
        """Without its length. The elements are empty and equal; if they `differ`, each names something else, and the
        arrays in it have `inner` empty elements.
        """
        one = len(encode(self._request(1, differ=differ, inner=inner), self.version))
        more = len(encode(self._request(2, differ=differ, inner=inner), self.version)) - one
        count = (largest_bytes - HEADER_BYTES - one) // max(1, more)
        header = RequestHeader(self.spec.key, self.version, 1, "wide")
        frame = encode_request(header, self._request(count, differ=differ, inner=inner))
        while len(frame) > largest_bytes:  # the names of many are longer than those of two
            count = count * largest_bytes // len(frame)
            frame = encode_request(header, self._request(count, differ=differ, inner=inner))
        return frame

    def _request(self, count: int, *, differ: bool, inner: int) -> Request:
        request = _filled(self.spec.request_type(), self.version, self.path, count, differ=differ, inner=inner)
        assert isinstance(request, Request)
        return request


def wide_arrays(specs: Iterable[ApiSpec]) -> Iterator[WideArray]:
    """Those of the first and the last version of every API but the controller's."""
    for spec, version in _first_and_last_versions(specs):
        yield from (WideArray(spec, version, path) for path in _arrays(spec.request_type(), version))


def widest_requests(
    specs: Iterable[ApiSpec] = tuple(API.values()), *, largest_bytes: int = LARGEST_BYTES
) -> Iterator[tuple[str, bytes]]:
    """(name, frame without its length), of the same versions: each array as long as fits, and false counts."""
    for spec, version in _first_and_last_versions(specs):
        for path in _arrays(spec.request_type(), version):
            array = WideArray(spec, version, path)
            yield array.name, array.frame(largest_bytes=largest_bytes)
        is_flexible = spec.request_header_version(version) == 2
        start = struct.pack(">hhih", spec.key, version, 1, 2) + b"me" + (b"\0" if is_flexible else b"")
        for filler in (b"\x00", b"\x01", b"\x02", b"\x7f", b"\xff"):
            yield f"{spec.name} v{version} of {filler!r}", start + filler * (largest_bytes - len(start))


def _first_and_last_versions(specs: Iterable[ApiSpec]) -> Iterator[tuple[ApiSpec, int]]:
    for spec in specs:
        if spec.key not in OF_THE_CONTROLLER:
            yield from ((spec, version) for version in sorted({spec.min_version, spec.max_version}))


def _fields(struct_type: type[Struct], version: int) -> Iterator[Field]:
    return (field for field in struct_type.FIELDS if field.versions.covers(version) or field.tagged.covers(version))


def _arrays(struct_type: type[Struct], version: int) -> Iterator[tuple[str, ...]]:
    """The path of every array, by names of fields."""
    for field in _fields(struct_type, version):
        if field.kind is Kind.ARRAY:
            yield (field.name,)
        if isinstance(field.element, type):
            yield from ((field.name, *path) for path in _arrays(field.element, version))


def _filled(
    struct_type: type[Struct], version: int, path: tuple[str, ...], count: int, *, differ: bool, inner: int = 0
) -> Struct:
    """The smallest instance whose array at `path` has `count` items; arrays on the way have one, and those in different
    items `inner`.
    """
    values: dict[str, object] = {}
    for field in _fields(struct_type, version):
        is_on_path = bool(path) and field.name == path[0]
        rest = path[1:] if is_on_path else ()
        if field.kind is Kind.STRUCT:
            assert isinstance(field.element, type)
            values[field.name] = _filled(field.element, version, rest, count, differ=differ, inner=inner)
        elif field.kind is Kind.ARRAY and is_on_path and len(path) == 1 and differ:
            values[field.name] = [_named(field, version, number, inner) for number in range(count)]
        elif field.kind is Kind.ARRAY:
            beside = 0 if path else inner
            items = beside if not is_on_path else count if len(path) == 1 else 1
            values[field.name] = [_item(field, version, rest, count, differ=differ, inner=inner)] * items
    return struct_type(**values)


def _item(field: Field, version: int, path: tuple[str, ...], count: int, *, differ: bool, inner: int) -> object:
    if isinstance(field.element, Primitive):
        return field.element.default
    assert isinstance(field.element, type)
    return _filled(field.element, version, path, count, differ=differ, inner=inner)


def _named(field: Field, version: int, number: int, inner: int) -> object:
    """The element that has this number as its name, id or index."""
    if isinstance(field.element, Primitive):
        return _numbered(field.element.kind, number)
    assert isinstance(field.element, type)
    item = _filled(field.element, version, (), 0, differ=True, inner=inner)
    names = {
        inner.kind: inner
        for inner in reversed(list(_fields(field.element, version)))
        if inner.kind not in (Kind.ARRAY, Kind.STRUCT)
    }
    for kind in (Kind.STRING, Kind.UUID, Kind.INT32, Kind.INT64):
        if kind in names:
            setattr(item, names[kind].name, _numbered(kind, number))
            break
    if hasattr(item, "resource_type"):
        item.resource_type = TOPIC_RESOURCE
    return item


def _numbered(kind: Kind, number: int) -> object:
    if kind is Kind.STRING:
        return f"{number:x}"
    return number.to_bytes(UUID_SIZE) if kind is Kind.UUID else number

"""Requests of one megabyte that need most work: each array of each schema as long as fits, and false counts."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from odradek.protocol.api import API, ApiSpec
from odradek.protocol.codec.codec import encode
from odradek.protocol.codec.schema import Field, Kind, Primitive, Request, Struct
from odradek.protocol.headers import RequestHeader, encode_request
from tests.support.wire.mutated_frames import OF_THE_CONTROLLER

LARGEST_BYTES: Final = 1 << 20
HEADER_BYTES: Final = 100


def widest_requests(specs: Iterable[ApiSpec] = tuple(API.values())) -> Iterator[tuple[str, bytes]]:
    """(name, frame without its length), for the first and the last version of every API but the controller's."""
    for spec in specs:
        if spec.key in OF_THE_CONTROLLER:
            continue
        for version in sorted({spec.min_version, spec.max_version}):
            header = RequestHeader(spec.key, version, 1, "wide")
            for path in _arrays(spec.request_type(), version):
                request = _filled(spec.request_type(), version, path, 1)
                one = len(encode(request, version))
                more = len(encode(_filled(spec.request_type(), version, path, 2), version)) - one
                count = (LARGEST_BYTES - HEADER_BYTES - one) // max(1, more)
                request = _filled(spec.request_type(), version, path, count)
                assert isinstance(request, Request)
                yield f"{spec.name} v{version} {'.'.join(path)}", encode_request(header, request)
            is_flexible = spec.request_header_version(version) == 2
            start = struct.pack(">hhih", spec.key, version, 1, 2) + b"me" + (b"\0" if is_flexible else b"")
            for filler in (b"\x00", b"\x01", b"\x02", b"\x7f", b"\xff"):
                yield f"{spec.name} v{version} of {filler!r}", start + filler * (LARGEST_BYTES - len(start))


def _fields(struct_type: type[Struct], version: int) -> Iterator[Field]:
    return (field for field in struct_type.FIELDS if field.versions.covers(version) or field.tagged.covers(version))


def _arrays(struct_type: type[Struct], version: int) -> Iterator[tuple[str, ...]]:
    """The path of every array, by names of fields."""
    for field in _fields(struct_type, version):
        if field.kind is Kind.ARRAY:
            yield (field.name,)
        if isinstance(field.element, type):
            yield from ((field.name, *path) for path in _arrays(field.element, version))


def _filled(struct_type: type[Struct], version: int, path: tuple[str, ...], count: int) -> Struct:
    """The smallest instance whose array at `path` has `count` items; arrays on the way have one."""
    values: dict[str, object] = {}
    for field in _fields(struct_type, version):
        is_on_path = bool(path) and field.name == path[0]
        if field.kind is Kind.STRUCT:
            assert isinstance(field.element, type)
            values[field.name] = _filled(field.element, version, path[1:] if is_on_path else (), count)
        elif field.kind is Kind.ARRAY:
            items = 0 if not is_on_path else count if len(path) == 1 else 1
            values[field.name] = [_item(field, version, path[1:] if is_on_path else (), count)] * items
    return struct_type(**values)


def _item(field: Field, version: int, path: tuple[str, ...], count: int) -> object:
    if isinstance(field.element, Primitive):
        return field.element.default
    assert isinstance(field.element, type)
    return _filled(field.element, version, path, count)

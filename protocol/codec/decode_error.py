"""The error of all decoders, and the reading of unknown tagged fields, which is rare enough to be a call."""

from __future__ import annotations

from odradek.protocol.codec.schema import RawTaggedField
from odradek.protocol.codec.varint import read_uvarint, uvarint_tail


class DecodeError(Exception):
    """The bytes are not a message of this type and version. The only error that decoding raises."""


def length_out_of_bounds(label: str, length: int, left: int) -> DecodeError:
    if length < 0:
        return DecodeError(f"{label} was serialized as null, but is not nullable in this version")
    return DecodeError(f"{label} claims {length} bytes, of which {left} are there or which are too many for its type")


def count_out_of_bounds(label: str, count: int, left: int) -> DecodeError:
    if count < 0:
        return DecodeError(f"{label} was serialized as null, but is not nullable in this version")
    return DecodeError(f"{label} claims {count} elements, but there are only {left} bytes remaining")


def budget_exceeded(label: str) -> DecodeError:
    return DecodeError(f"{label} exceeds the number of values a message may hold")


def tag_count_exceeded(count: int, limit: int) -> DecodeError:
    return DecodeError(f"a struct claims {count} tagged fields; at most {limit} are accepted")


def tag_out_of_order(tag: int, previous: int) -> DecodeError:
    return DecodeError(f"tag {tag} follows tag {previous}; tags must ascend")


def tag_size_mismatch(tag: int, size: int, excess: int) -> DecodeError:
    return DecodeError(f"tagged field {tag} claims {size} bytes, but its value has {size + excess}")


def read_unknown_tagged_fields(
    data: bytes | memoryview, pos: int, end: int, count: int, values: int, max_tags: int
) -> tuple[list[RawTaggedField], int, int]:
    """The tagged section of a struct that knows no tags, whose count begins with the byte `count`, already read."""
    found, pos, values = find_unknown_tagged_fields(data, pos, end, count, values, max_tags)
    return [RawTaggedField(tag, bytes(data[start:stop])) for tag, start, stop in found], pos, values


def find_unknown_tagged_fields(
    data: bytes | memoryview, pos: int, end: int, count: int, values: int, max_tags: int
) -> tuple[list[tuple[int, int, int]], int, int]:
    """The same without the bytes: of each field its tag, and where its value begins and ends.

    One value may have as many bytes as a frame; who skips it must not copy it.
    """
    if count > 127:
        count, pos = uvarint_tail(data, pos, count)
    if count > max_tags:
        raise tag_count_exceeded(count, max_tags)
    values -= count
    if values < 0:
        raise budget_exceeded("tagged fields")
    found = []
    previous = -1
    for _ in range(count):
        tag, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        if tag <= previous:
            raise tag_out_of_order(tag, previous)
        previous = tag
        stop = pos + size
        if stop > end:
            raise length_out_of_bounds("tagged field", size, end - pos)
        found.append((tag, pos, stop))
        pos = stop
    return found, pos, values

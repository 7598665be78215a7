"""What cannot be expressed in a version is refused, what may be dropped is dropped, and tags are written in order."""

from __future__ import annotations

import pytest

from odradek.protocol.codec.codec import EncodeError, decode, encode, encode_parts
from odradek.protocol.codec.limits import MAX_STRING_BYTES
from odradek.protocol.codec.schema import (
    INT16,
    Message,
    RawTaggedField,
    Struct,
    array,
    boolean,
    float64,
    int8,
    int32,
    string,
    struct,
    uint16,
    uint32,
)
from odradek.protocol.messages.create_topics import CreateTopicsResponse
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse, FetchTopic, ReplicaState
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.offset_commit import OffsetCommitRequest
from odradek.protocol.messages.produce import ProduceRequest


class Inner(Struct):
    number: int = int32("0+", default=-1)
    flag: bool = boolean("0+")


class Sample(Message, versions="0-2", flexible="1+"):
    small: int = int8("0+")
    port: int = uint16("0+")
    size: int = uint32("0+")
    ratio: float = float64("0+")
    text: str = string("0+")
    shorts: list[int] = array(INT16, "0+")
    later: int = int32("2+", default=-1)
    later_dropped: int = int32("2+", ignorable=True)
    later_flag: bool = boolean("2+", default=True)
    later_text: str | None = string("2+", nullable="2+", default=None)
    later_list: list[int] = array(INT16, "2+")
    later_struct: Inner = struct(Inner, "2+")
    maybe: Inner | None = struct(Inner, "1+", nullable="1+", default=None, ignorable=True)
    tagged: int = int32("1+", tag=1, tagged="1+", ignorable=True)
    tagged_struct: Inner = struct(Inner, "1+", tag=5, tagged="1+", ignorable=True)


def test_examples_of_every_width() -> None:
    value = Sample(small=-1, port=65535, size=0xFFFFFFFF, ratio=0.5, text="é", shorts=[-2])
    assert encode(value, 0).hex() == "ffffffffffffff3fe00000000000000002c3a900000001fffe"
    assert encode(value, 1).hex() == "ffffffffffffff3fe000000000000003c3a902fffeff00"


@pytest.mark.parametrize(
    "value",
    [
        Sample(small=128),
        Sample(small=-129),
        Sample(port=65536),
        Sample(port=-1),
        Sample(size=1 << 32),
        Sample(shorts=[0, 40_000]),
        Sample(shorts=[0] * 20 + [40_000]),
        Sample(text="\ud800"),
        Sample(text=None),  # type: ignore[arg-type]
        Sample(small=None),  # type: ignore[arg-type]
        Sample(shorts=None),  # type: ignore[arg-type]
        Sample(shorts=[None]),  # type: ignore[list-item]
        Sample(text=b"bytes"),  # type: ignore[arg-type]
        Sample(small="1"),  # type: ignore[arg-type]
    ],
    ids=repr,
)
@pytest.mark.parametrize("version", [0, 1])
def test_values_outside_their_type(value: Sample, version: int) -> None:
    with pytest.raises(EncodeError):
        encode(value, version)
    with pytest.raises(EncodeError):
        encode_parts(value, version)


@pytest.mark.parametrize("version", [1, 2])
def test_strings_have_kafkas_bound(version: int) -> None:
    assert encode(Sample(text="a" * MAX_STRING_BYTES), version)
    with pytest.raises(EncodeError, match="too long"):
        encode(Sample(text="a" * (MAX_STRING_BYTES + 1)), version)
    with pytest.raises(EncodeError):
        encode(Sample(text="a" * (MAX_STRING_BYTES + 1)), 0)


@pytest.mark.parametrize(
    "changed",
    [
        {"later": 0},
        {"later_flag": False},
        {"later_text": ""},
        {"later_list": [1]},
        {"later_list": None},
        {"later_struct": Inner(number=0)},
        {"later_struct": Inner(flag=True)},
    ],
    ids=str,
)
@pytest.mark.parametrize("version", [0, 1])
def test_non_default_outside_its_versions_is_refused(changed: dict[str, object], version: int) -> None:
    value = Sample(**changed)  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match=f"non-default Sample.{next(iter(changed))} at version {version}"):
        encode(value, version)
    if changed != {"later_list": None}:
        assert decode(Sample, encode(value, 2), 2) == value


def test_ignorable_fields_are_dropped() -> None:
    value = Sample(later_dropped=5, tagged=5, tagged_struct=Inner(number=5), maybe=Inner())
    assert encode(value, 0) == encode(Sample(), 0)


def test_nullable_struct() -> None:
    plain = encode(Sample(), 1)
    assert plain[-2:] == b"\xff\x00"
    assert encode(Sample(maybe=Inner(number=1)), 1) == plain[:-2] + bytes.fromhex("0100000001000000")


def test_tagged_fields_are_written_in_order_and_left_out_at_their_default() -> None:
    plain = encode(Sample(), 1)[:-1]
    assert encode(Sample(tagged=7), 1) == plain + bytes.fromhex("01010400000007")
    both = Sample(tagged=7, tagged_struct=Inner(flag=True))
    assert encode(both, 1) == plain + bytes.fromhex("020104000000070506ffffffff0100")


def test_unknown_tagged_fields_are_sent_on_among_the_known_ones() -> None:
    value = Sample(tagged=7, tagged_struct=Inner(flag=True))
    value.unknown_tagged_fields = [RawTaggedField(3, b"three"), RawTaggedField(0, b""), RawTaggedField(300, b"x")]  # type: ignore[misc]
    encoded = encode(value, 1)
    section = "050000010400000007030574687265650506ffffffff0100ac020178"
    assert encoded == encode(Sample(), 1)[:-1] + bytes.fromhex(section)
    again = decode(Sample, encoded, 1)
    assert again.unknown_tagged_fields == sorted(value.unknown_tagged_fields or ())
    assert encode(again, 1) == encoded


def test_unknown_tagged_fields_of_nested_structs_are_sent_on() -> None:
    topic = FetchTopic(topic_id=bytes(16))
    topic.unknown_tagged_fields = [RawTaggedField(9, b"nine")]  # type: ignore[misc]
    value = FetchRequest(topics=[topic])
    assert decode(FetchRequest, encode(value, 17), 17) == value
    state = ReplicaState()
    state.unknown_tagged_fields = [RawTaggedField(9, b"nine")]  # type: ignore[misc]
    value = FetchRequest(replica_state=state)
    assert decode(FetchRequest, encode(value, 17), 17) == value
    assert encode_parts(value, 17, b"prefix") == [b"prefix" + encode(value, 17)]


def test_a_retained_tag_that_is_also_a_known_one_is_refused() -> None:
    value = Sample(tagged=7)
    value.unknown_tagged_fields = [RawTaggedField(1, b"")]  # type: ignore[misc]
    with pytest.raises(EncodeError, match="appears twice"):
        encode(value, 1)


def test_classic_versions_have_no_place_for_retained_tags() -> None:
    value = Sample()
    value.unknown_tagged_fields = [RawTaggedField(9, b"")]  # type: ignore[misc]
    with pytest.raises(EncodeError, match="Tagged fields were set"):
        encode(value, 0)


def test_null_is_per_version() -> None:
    request = MetadataRequest(topics=None)
    assert encode(request, 1) == b"\xff\xff\xff\xff"
    with pytest.raises(EncodeError):
        encode(request, 0)


@pytest.mark.parametrize("uuid", [b"", bytes(15), bytes(17), "0123456789abcdef"])
def test_a_uuid_has_sixteen_bytes(uuid: bytes) -> None:
    with pytest.raises(EncodeError):
        encode(FetchRequest(topics=[FetchTopic(topic_id=uuid)]), 13)


def test_kafkas_ignorable_fields() -> None:
    """A broker sets the newest fields and lets the version drop them; others it must not set."""
    assert encode(CreateTopicsResponse(throttle_time_ms=9), 0) == encode(CreateTopicsResponse(), 0)
    assert encode(FetchResponse(error_code=6, throttle_time_ms=9), 0) == encode(FetchResponse(), 0)
    with pytest.raises(EncodeError, match=r"FetchResponse\.session_id"):
        encode(FetchResponse(session_id=1), 6)
    with pytest.raises(EncodeError, match=r"ProduceRequest\.transactional_id"):
        encode(ProduceRequest(transactional_id="t"), 2)
    with pytest.raises(EncodeError, match=r"HeartbeatRequest\.group_instance_id"):
        encode(HeartbeatRequest(group_instance_id="i"), 2)
    assert encode(OffsetCommitRequest(retention_time_ms=5), 9) == encode(OffsetCommitRequest(), 9)

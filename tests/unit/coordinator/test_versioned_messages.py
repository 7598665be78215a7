from __future__ import annotations

import pytest

from odradek.coordinator.versioned_messages import CoordinatorRecordError, decode_versioned, read_version
from odradek.protocol.codec.codec import encode
from odradek.protocol.messages.coordinator_records import OffsetCommitValue


@pytest.mark.parametrize(("data", "version"), [(b"\0\3", 3), (b"\xff\xffx", -1)])
def test_version_is_in_front(data: bytes, version: int) -> None:
    assert read_version(data) == version


@pytest.mark.parametrize("data", [b"", b"\0"])
def test_nothing_has_no_version(data: bytes) -> None:
    with pytest.raises(CoordinatorRecordError, match="has no version"):
        read_version(data)


@pytest.mark.parametrize("version", range(5))
def test_known_versions_are_read(version: int) -> None:
    value = OffsetCommitValue(offset=7, metadata="m")
    assert decode_versioned(OffsetCommitValue, version.to_bytes(2, "big") + encode(value, version)) == value


@pytest.mark.parametrize("data", [b"\0\5" + bytes(40), b"\xff\xff" + bytes(40), b"\0\3\0"])
def test_others_are_refused(data: bytes) -> None:
    with pytest.raises(CoordinatorRecordError):
        decode_versioned(OffsetCommitValue, data)

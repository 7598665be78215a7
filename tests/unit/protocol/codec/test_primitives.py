from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.codec.primitives import ZERO_UUID, uuid_from_text, uuid_to_text


def test_reserved_uuids_print_as_kafka_prints_them() -> None:
    assert uuid_to_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_to_text(bytes(15) + b"\x01") == "AAAAAAAAAAAAAAAAAAAAAQ"


def test_text_is_url_safe() -> None:
    assert uuid_to_text(b"\xfb\xff" * 8) == "-__7__v_-__7__v_-__7_w"


@given(st.binary(min_size=16, max_size=16))
def test_every_uuid_survives_its_text(uuid: bytes) -> None:
    text = uuid_to_text(uuid)
    assert len(text) == 22
    assert uuid_from_text(text) == uuid


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AAAA",
        "A" * 21,
        "A" * 23,
        "A" * 40,
        "AAAAAAAAAAAAAAAAAAAAA!",
        "ÄAAAAAAAAAAAAAAAAAAAAA",
        "A" * 20 + "=A",
        "+/" + "A" * 20,
    ],
)
def test_refuses_what_is_not_the_text_of_sixteen_bytes(text: str) -> None:
    with pytest.raises(ValueError, match=r"UUID|16 bytes"):
        uuid_from_text(text)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_refuses_to_print_what_is_not_sixteen_bytes(size: int) -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        uuid_to_text(bytes(size))

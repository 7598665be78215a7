from __future__ import annotations

import pytest

from odradek.broker.security.sasl.oauth.client_response import ClientInitialResponse
from odradek.broker.security.sasl.ports import SaslError


def test_a_message_is_what_its_parts_say() -> None:
    message = b"n,a=al=2Cice,\x01auth=Bearer a.b-_~+/c==\x01traceId=12 3\x01\x01"
    parsed = ClientInitialResponse.parse(message)
    assert parsed == ("a.b-_~+/c==", "al=2Cice", {"traceId": "12 3"})
    assert parsed.to_bytes() == message
    assert ClientInitialResponse("t", "", {}).to_bytes() == b"n,,\x01auth=Bearer t\x01\x01"
    assert "a.b" not in repr(parsed)


def test_the_scheme_is_read_in_any_case_and_the_last_of_two_values_counts() -> None:
    assert ClientInitialResponse.parse(b"n,,\x01auth=bearer one\x01auth=BEARER  two\x01\x01").token == "two"


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer t\x01",
        b"n,,\x01auth=Bearer t\x01\x01x",
        b"y,,\x01auth=Bearer t\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer t\x01\x01",
        b"n,alice,\x01auth=Bearer t\x01\x01",
        b"n,a=,\x01auth=Bearer t\x01\x01",
        b"n,a=x=y,\x01auth=Bearer t\x01\x01",
        b"n,a=\xff,\x01auth=Bearer t\x01\x01",
        b"n,,\x01auth=Basic dDp0\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer t\x01k1=v\x01\x01",
        b"n,,\x01auth=Bearer t\x01k=\x01\x01",
        b"n,,\x01auth=Bearer t\x01k=\x7f\x01\x01",
        b"n,,\x01k=v\x01\x01",
    ],
)
def test_other_messages_are_refused(message: bytes) -> None:
    with pytest.raises(SaslError):
        ClientInitialResponse.parse(message)


def test_a_long_hostile_message_is_refused_in_linear_time() -> None:
    with pytest.raises(SaslError):
        ClientInitialResponse.parse(b"n,a=" + b"=2C" * 100_000 + b",\x01" + b"k=v\x01" * 20_000)

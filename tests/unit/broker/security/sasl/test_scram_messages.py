from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.security.sasl.ports import SaslError
from odradek.broker.security.sasl.scram_messages import (
    ClientFinalMessage,
    ClientFirstMessage,
    ServerFinalMessage,
    ServerFirstMessage,
    sasl_name,
    user_of,
)


def test_the_first_message_of_a_client() -> None:
    first = ClientFirstMessage.parse(b"n,a=al=2Cice,n=al=2Cice,r=abc,tokenauth=true,x=y=z")
    assert first.gs2_header == b"n,a=al=2Cice,"
    assert first.bare == b"n=al=2Cice,r=abc,tokenauth=true,x=y=z"
    assert (first.user, first.nonce, first.authorization_id) == ("al,ice", "abc", "al=2Cice")
    assert first.extensions == {"tokenauth": "true", "x": "y=z"}
    assert first.is_token_authenticated


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,n=,r=abc",
        b"n,,n=a,r=",
        b"y,,n=a,r=abc",
        b"p=tls-unique,,n=a,r=abc",
        b"n,n=a,r=abc",
        b"n,,n=a=b,r=abc",
        b"n,,n=a=3d,r=abc",
        b"n,,n=\xc3\xa9,r=abc",
        b"n,,n=a,r=a\x00",
        b"n,,n=a,r=abc,1=2",
        b"n,,n=a,r=abc\n",
    ],
)
def test_an_invalid_first_message_is_refused(message: bytes) -> None:
    with pytest.raises(SaslError):
        ClientFirstMessage.parse(message)


@pytest.mark.parametrize(
    "message", [b"", b"c=biws,r=a", b"c=b,r=a,p=AAAA", b"c=biws,r=a,p=A", b"c=biws,r=a,p=AAA=,x=y"]
)
def test_an_invalid_final_message_is_refused(message: bytes) -> None:
    with pytest.raises(SaslError):
        ClientFinalMessage.parse(message)


@given(st.binary())
def test_any_bytes_are_read_or_refused(message: bytes) -> None:
    for kind in (ClientFirstMessage, ServerFirstMessage, ClientFinalMessage, ServerFinalMessage):
        with suppress(SaslError):
            kind.parse(message)


@given(st.text(st.characters(max_codepoint=127, exclude_characters="\0"), min_size=1))
def test_names_are_read_as_they_were_written(name: str) -> None:
    assert user_of(sasl_name(name)) == name
    assert ClientFirstMessage.parse(f"n,,n={sasl_name(name)},r=x".encode()).user == name


@given(st.binary(), st.integers(1, 999_999_999))
def test_the_messages_of_a_server_are_read_as_they_were_written(data: bytes, iterations: int) -> None:
    first = ServerFirstMessage("nonce", data, iterations)
    assert ServerFirstMessage.parse(first.to_bytes()) == first
    final = ServerFinalMessage(None, data)
    assert ServerFinalMessage.parse(final.to_bytes()) == final


def test_an_error_of_a_server() -> None:
    assert ServerFinalMessage.parse(b"e=invalid-proof").error == "invalid-proof"

from __future__ import annotations

import pytest

from odradek.broker.security.sasl.kerberos.exchanges import (
    CLIENT_CHOICE,
    SERVER_OFFER,
    AcceptorExchange,
    InitiatorExchange,
)
from odradek.broker.security.sasl.ports import SaslError, TransientSaslError
from tests.support.in_process.security.scripted_contexts import ScriptedContext, sealed


def acceptor(context: ScriptedContext) -> AcceptorExchange:
    return AcceptorExchange(lambda: context)


def chosen(choice: bytes) -> AcceptorExchange:
    """A server that has received the choice of a client."""
    exchange = acceptor(ScriptedContext([b"server token"]))
    assert exchange.evaluate(b"client token") == b"server token"
    assert exchange.evaluate(b"") == sealed(SERVER_OFFER)
    assert exchange.evaluate(sealed(choice)) is None
    return exchange


def test_a_client_is_authenticated_as_its_principal() -> None:
    exchange = acceptor(ScriptedContext([b"server token"]))
    assert exchange.evaluate(b"client token") == b"server token"
    assert not exchange.is_complete
    assert exchange.evaluate(b"") == sealed(b"\x01\x01\x00\x00"), "no layer only, as Java's server says it"
    assert not exchange.is_complete
    assert exchange.evaluate(sealed(b"\x01\x00\x00\x00alice@EXAMPLE.COM")) is None
    assert exchange.is_complete
    assert exchange.client_principal == "alice@EXAMPLE.COM"


def test_another_authorization_id_does_not_count() -> None:
    exchange = chosen(b"\x01\x00\x00\x00admin@EXAMPLE.COM")
    assert (exchange.client_principal, exchange.requested_id) == ("alice@EXAMPLE.COM", "admin@EXAMPLE.COM")


@pytest.mark.parametrize("choice", [CLIENT_CHOICE, b"\x01\xff\xff\xff", b"\x07\0\0\0"])
def test_choices_that_hold_no_layer(choice: bytes) -> None:
    assert chosen(choice).is_complete


@pytest.mark.parametrize("choice", [b"\x02\0\0\0", b"\x04\0\0\0", b"\0\0\0\0", b"", b"\x01\0\0"])
def test_other_choices_are_refused(choice: bytes) -> None:
    with pytest.raises(SaslError):
        chosen(choice)


def test_a_choice_that_is_not_sealed_is_refused() -> None:
    exchange = acceptor(ScriptedContext([b"server token"]))
    exchange.evaluate(b"client token")
    exchange.evaluate(b"")
    with pytest.raises(SaslError, match="bad checksum"):
        exchange.evaluate(CLIENT_CHOICE)
    assert not exchange.is_complete


def test_a_context_without_a_last_token_offers_at_once() -> None:
    exchange = acceptor(ScriptedContext([b"one", None]))
    assert exchange.evaluate(b"a") == b"one"
    assert exchange.evaluate(b"b") == sealed(SERVER_OFFER)


def test_nothing_comes_before_the_offer() -> None:
    exchange = acceptor(ScriptedContext([b"server token"]))
    exchange.evaluate(b"client token")
    with pytest.raises(SaslError, match="expecting no response data"):
        exchange.evaluate(sealed(CLIENT_CHOICE))


def test_nothing_comes_after_the_end() -> None:
    with pytest.raises(SaslError, match="already complete"):
        chosen(CLIENT_CHOICE).evaluate(b"")


@pytest.mark.parametrize("is_transient", [False, True])
def test_a_refusal_of_the_library(is_transient: bool) -> None:
    with pytest.raises(SaslError, match="no key") as refusal:
        acceptor(ScriptedContext([], refusal="no key", is_transient=is_transient)).evaluate(b"token")
    assert isinstance(refusal.value, TransientSaslError) == is_transient


def test_both_sides_agree() -> None:
    client = InitiatorExchange(lambda: ScriptedContext([b"hello", None], is_client=True))
    server = acceptor(ScriptedContext([b"welcome"]))
    challenge, messages = b"", 0
    while (response := client.evaluate_challenge(challenge)) is not None:
        challenge = server.evaluate(response) or b""
        messages += 1
    assert (client.is_complete, server.is_complete, messages) == (True, True, 3)
    assert server.requested_id == "alice@EXAMPLE.COM", "as Java's client sends it"


@pytest.mark.parametrize("offer", [b"", b"\x06\0\0\0"])
def test_a_client_needs_a_server_without_layers(offer: bytes) -> None:
    client = InitiatorExchange(lambda: ScriptedContext([b"hello"], is_client=True))
    assert client.evaluate_challenge(b"") == b"hello"
    with pytest.raises(SaslError, match="No common protection layer"):
        client.evaluate_challenge(sealed(offer))
    assert not client.is_complete


def test_a_client_whose_server_has_not_sealed_its_offer_ends() -> None:
    client = InitiatorExchange(lambda: ScriptedContext([b"hello"], is_client=True))
    client.evaluate_challenge(b"")
    for challenge in (b"", SERVER_OFFER):
        with pytest.raises(SaslError, match="bad checksum"):
            client.evaluate_challenge(challenge)

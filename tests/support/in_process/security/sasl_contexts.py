"""What mechanisms are made from, for tests."""

from __future__ import annotations

import asyncio

from odradek.broker.machine.io_pool import HANDLER_CALLS_MAX
from odradek.broker.security.sasl.jaas import parse_jaas_config
from odradek.broker.security.sasl.ports import SaslContext, ScramCredentials, TokenCache, TokenInfo
from odradek.controller.model.scram_credential import ScramCredential
from odradek.storage.disk.ports import InlineIoPool
from odradek.timer.clock import ManualClock


class Credentials:
    """Implements `ScramCredentials`."""

    def __init__(self, **users: ScramCredential) -> None:
        self.users = users

    def scram_credential(self, mechanism: str, user: str, /) -> ScramCredential | None:
        return self.users.get(user)


class Tokens(Credentials):
    """Implements `TokenCache`: the tokens of alice."""

    def scram_credential(self, mechanism: str, token_id: str, /) -> ScramCredential | None:
        return self.users.get(token_id)

    def token_info(self, token_id: str, /) -> TokenInfo | None:
        return TokenInfo("User:alice", 5000) if token_id in self.users else None


def context(
    mechanism: str, jaas: str, credentials: ScramCredentials | None = None, tokens: TokenCache | None = None
) -> SaslContext:
    return SaslContext(
        mechanism,
        parse_jaas_config(jaas),
        lambda name: None,
        ManualClock(),
        InlineIoPool(),
        lambda count: bytes(range(count)),
        credentials or Credentials(),
        tokens,
    )


def slots() -> asyncio.Semaphore:
    """As a broker has them for the classes of its operator."""
    return asyncio.Semaphore(HANDLER_CALLS_MAX)

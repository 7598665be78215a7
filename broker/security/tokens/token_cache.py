"""The delegation tokens of the cluster in the memory of a broker, with the SCRAM credentials of their HMACs.

Kafka: DelegationTokenCache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.broker.security.sasl.ports import TokenInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.controller.model.delegation_token import TokenInformation
    from odradek.controller.model.scram_credential import ScramCredential


class DelegationToken(NamedTuple):
    """A token with its secrets, which its repr does not show."""

    info: TokenInformation
    hmac: bytes
    """The password of the token; who knows it may also renew the token."""
    credentials: Mapping[str, ScramCredential]
    """By the name of the SCRAM mechanism."""

    def __repr__(self) -> str:
        return f"DelegationToken({self.info})"


class DelegationTokenCache:
    """Implements `sasl.ports.TokenCache`."""

    def __init__(self) -> None:
        self._tokens: dict[str, DelegationToken] = {}
        self._token_ids: dict[bytes, str] = {}
        """By HMAC."""

    def token_info(self, token_id: str, /) -> TokenInfo | None:
        token = self._tokens.get(token_id)
        return None if token is None else TokenInfo(str(token.info.owner), token.info.expiry_ms)

    def scram_credential(self, mechanism: str, token_id: str, /) -> ScramCredential | None:
        token = self._tokens.get(token_id)
        return None if token is None else token.credentials.get(mechanism)

    def token(self, token_id: str) -> DelegationToken | None:
        return self._tokens.get(token_id)

    def token_for_hmac(self, hmac: bytes) -> DelegationToken | None:
        token_id = self._token_ids.get(hmac)
        return None if token_id is None else self._tokens.get(token_id)

    def tokens(self) -> list[DelegationToken]:
        return list(self._tokens.values())

    def update(self, token: DelegationToken) -> None:
        self._tokens[token.info.token_id] = token
        self._token_ids[token.hmac] = token.info.token_id

    def remove(self, token_id: str) -> None:
        token = self._tokens.pop(token_id, None)
        if token is not None:
            self._token_ids.pop(token.hmac, None)

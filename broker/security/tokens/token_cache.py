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
        self._infos: dict[str, TokenInfo] = {}
        self._credentials: dict[tuple[str, str], ScramCredential] = {}
        """By mechanism and id. A login looks up the same for an unknown id as for a known one, and does no more."""
        self._token_ids: dict[bytes, str] = {}
        """By HMAC."""

    def token_info(self, token_id: str, /) -> TokenInfo | None:
        return self._infos.get(token_id)

    def scram_credential(self, mechanism: str, token_id: str, /) -> ScramCredential | None:
        return self._credentials.get((mechanism, token_id))

    def token(self, token_id: str) -> DelegationToken | None:
        return self._tokens.get(token_id)

    def token_for_hmac(self, hmac: bytes) -> DelegationToken | None:
        token_id = self._token_ids.get(hmac)
        return None if token_id is None else self._tokens.get(token_id)

    def tokens(self) -> list[DelegationToken]:
        return list(self._tokens.values())

    def update(self, token: DelegationToken) -> None:
        token_id = token.info.token_id
        self._tokens[token_id] = token
        self._infos[token_id] = TokenInfo(str(token.info.owner), token.info.expiry_ms)
        self._credentials |= {(mechanism, token_id): found for mechanism, found in token.credentials.items()}
        self._token_ids[token.hmac] = token.info.token_id

    def remove(self, token_id: str) -> None:
        token = self._tokens.pop(token_id, None)
        if token is not None:
            del self._infos[token_id]
            for mechanism in token.credentials:
                del self._credentials[mechanism, token_id]
            self._token_ids.pop(token.hmac, None)

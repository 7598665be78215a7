"""A delegation token, as the metadata tree and the brokers know it; its secret is not part of it.

Kafka: TokenInformation, KafkaPrincipal.
"""

from __future__ import annotations

from typing import NamedTuple, Self


class Principal(NamedTuple):
    principal_type: str
    name: str

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Parse `User:name`. Raises: ValueError. Kafka: SecurityUtils.parseKafkaPrincipal."""
        principal_type, colon, name = text.partition(":")
        if not colon:
            raise ValueError(f"expected a string in format principalType:principalName but got {text}")
        return cls(principal_type, name)

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


USER_TYPE = "User"


class TokenInformation(NamedTuple):
    """Times are wall-clock times in ms."""

    token_id: str
    owner: Principal
    requester: Principal
    """The client that created the token, for itself or for another owner."""
    renewers: tuple[Principal, ...]
    issue_ms: int
    max_ms: int
    """Renewing moves the expiry up to this time and no further."""
    expiry_ms: int

    def is_owner_or_renewer(self, principal: Principal) -> bool:
        """Whether the principal may describe the token. Kafka: TokenInformation.ownerOrRenewer."""
        return principal in (self.owner, self.requester, *self.renewers)

    def may_renew(self, principal: Principal) -> bool:
        """Whether the principal may renew and expire the token. Kafka: DelegationTokenManagerZk.allowedToRenew."""
        return principal in (self.owner, *self.renewers)

    def is_expired(self, now_ms: int) -> bool:
        return self.max_ms < now_ms or self.expiry_ms < now_ms

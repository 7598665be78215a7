"""The SCRAM credentials of all users, as texts of `/config/users` that are parsed when a client authenticates.

Kafka: CredentialCache, CredentialProvider.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from odradek.controller.znodes import znodes

if TYPE_CHECKING:
    from odradek.controller.model.scram_credential import ScramCredential

_PREFIX: Final = "SCRAM-"
_ABSENT: Final = {
    name: f"salt={'A' * 36},stored_key={key},server_key={key},iterations=4096"
    for name, key in (("SCRAM-SHA-256", "A" * 43 + "="), ("SCRAM-SHA-512", "A" * 86 + "=="))
}
"""Parsed for an unknown user, as long as that of a known one, so that the time does not tell which users exist."""


class ScramCredentialCache:
    """Implements `ports.ScramCredentials`."""

    def __init__(self) -> None:
        self._texts: dict[str, dict[str, str]] = {}
        """User -> mechanism -> credential."""

    def config_changed(self, entity: str, config: Mapping[str, str]) -> None:
        """`entity`: the name below `/config/users`; it may be that of a user and a client."""
        if "/" in entity or entity == znodes.DEFAULT_ENTITY:
            return
        texts = {name: text for name, text in config.items() if name.startswith(_PREFIX)}
        if texts:
            self._texts[znodes.desanitize(entity)] = texts
        else:
            self._texts.pop(znodes.desanitize(entity), None)

    def scram_credential(self, mechanism: str, user: str, /) -> ScramCredential | None:
        """None: the user is unknown, has no credential for the mechanism, or an invalid one."""
        text = self._texts.get(user, {}).get(mechanism)
        from odradek.controller.model.scram_credential import ScramCredential  # not needed without SASL

        try:
            credential = ScramCredential.of_text(_ABSENT[mechanism] if text is None else text)
        except ValueError:
            return None
        return None if text is None else credential

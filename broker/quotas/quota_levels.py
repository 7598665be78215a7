"""Which quota applies to a client: eight levels, of which the most specific one with a quota decides.

    /config/users/<user>/clients/<client-id>
    /config/users/<user>/clients/<default>
    /config/users/<user>
    /config/users/<default>/clients/<client-id>
    /config/users/<default>/clients/<default>
    /config/users/<default>
    /config/clients/<client-id>
    /config/clients/<default>

The level also decides which clients share a quota. All client ids of a user share the quota of the user; a default for
user and client id holds for each pair alone. So what a client uses is counted under *tags*: user and client id, of
which one is empty when all share.

Kafka: ClientQuotaManager.DefaultQuotaCallback, QuotaTypes.
"""

from __future__ import annotations

from enum import IntFlag
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.quotas.quota_entity import ConfigEntity, ConfigEntityType
from odradek.controller.znodes import znodes

if TYPE_CHECKING:
    from odradek.broker.quotas.quota_entity import ClientQuotaEntity

Tags: TypeAlias = tuple[str, ...]
"""The identity under which what a client uses is counted."""


class QuotaTypes(IntFlag):
    """The kinds of entities that have, or once had, a node since the start of the broker."""

    NONE = 0
    CLIENT_ID = 1
    USER = 2
    USER_CLIENT_ID = 4


_DEFAULT_USER: Final = ConfigEntity(ConfigEntityType.DEFAULT_USER, znodes.DEFAULT_ENTITY)
_DEFAULT_CLIENT_ID: Final = ConfigEntity(ConfigEntityType.DEFAULT_CLIENT_ID, znodes.DEFAULT_ENTITY)


class QuotaLevels:
    """The quotas of one type, as the metadata has them."""

    __slots__ = ("_quotas", "enabled")

    def __init__(self) -> None:
        self._quotas: dict[tuple[ConfigEntity | None, ConfigEntity | None], float] = {}
        self.enabled = QuotaTypes.NONE

    @property
    def is_enabled(self) -> bool:
        """Whether any quota was ever set. It stays True until the next start, as in Kafka."""
        return self.enabled != QuotaTypes.NONE

    def update_quota(self, entity: ClientQuotaEntity, bound: float | None) -> None:
        """Set the quota of an entity; None removes it."""
        if entity.user is None:
            self.enabled |= QuotaTypes.CLIENT_ID
        else:
            self.enabled |= QuotaTypes.USER if entity.client_id is None else QuotaTypes.USER_CLIENT_ID
        if bound is None:
            self._quotas.pop(entity, None)
        else:
            self._quotas[entity] = bound

    def tags(self, principal: str, client_id: str) -> Tags:
        """The sanitized user and the client id. Kafka: DefaultQuotaCallback.quotaMetricTags."""
        enabled = self.enabled
        if enabled in (QuotaTypes.NONE, QuotaTypes.CLIENT_ID):
            return "", client_id
        user = sanitized_user(principal)
        if enabled == QuotaTypes.USER:
            return user, ""
        if enabled == QuotaTypes.USER_CLIENT_ID:
            return user, client_id
        quotas, named, client = self._quotas, _user(user), _client_id(client_id)
        for one in (named, _DEFAULT_USER):
            if (one, client) in quotas or (one, _DEFAULT_CLIENT_ID) in quotas:
                return user, client_id
            if (one, None) in quotas:
                return user, ""
        return "", client_id

    def limit(self, tags: Tags) -> float | None:
        """The quota of the clients with these tags. Kafka: DefaultQuotaCallback.quotaLimit."""
        user, client_id = tags
        if user and client_id:
            named, client = _user(user), _client_id(client_id)
            levels: tuple[tuple[ConfigEntity | None, ConfigEntity | None], ...] = (
                (named, client),
                (named, _DEFAULT_CLIENT_ID),
                (_DEFAULT_USER, client),
                (_DEFAULT_USER, _DEFAULT_CLIENT_ID),
            )
        elif user:
            levels = ((_user(user), None), (_DEFAULT_USER, None))
        elif client_id:
            levels = ((None, _client_id(client_id)), (None, _DEFAULT_CLIENT_ID))
        else:
            return None
        return next((self._quotas[level] for level in levels if level in self._quotas), None)

    def tag_names(self, tags: Tags) -> dict[str, str]:
        """The tags with their names. Kafka: ClientQuotaManager.DefaultTags."""
        user, client_id = tags
        return {"user": user, "client-id": client_id}

    def is_reset_required(self) -> bool:
        """Whether limits have changed without `update_quota`."""
        return False


@lru_cache(maxsize=1_000)
def sanitized_user(principal: str) -> str:
    """`User:name` as the name of a node. Kafka: Session.sanitizedUser."""
    return znodes.sanitize(principal.partition(":")[2])


@lru_cache(maxsize=1_000)
def _user(sanitized: str) -> ConfigEntity:
    return ConfigEntity(ConfigEntityType.USER, znodes.desanitize(sanitized))


def _client_id(name: str) -> ConfigEntity:
    return ConfigEntity(ConfigEntityType.CLIENT_ID, name)

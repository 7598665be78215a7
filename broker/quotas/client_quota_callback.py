"""A class of yours that decides the quotas of clients: `client.quota.callback.class` names it by its import path.

docs/quotas.md shows an example. The broker makes one object of the class, without arguments, and calls it in place of
the eight levels. The methods are called on the event loop, `quota_metric_tags` and `quota_reset_required` for each
request: they must not wait for a disk or a network. An exception is logged, and the request has no quota.

Kafka: ClientQuotaCallback, Cluster.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Protocol, TypeVar

from odradek.broker.network.listeners.rate_limited_log import RateLimitedLog
from odradek.broker.quotas.quota_entity import ClientQuotaEntity, ClientQuotaType

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.broker.quotas.quota_levels import Tags
    from odradek.timer.clock import Clock

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Cluster:
    """The cluster in the metadata of this broker. Each method reads the metadata; nothing is copied."""

    def __init__(self, cluster_id: str, cache: MetadataCache) -> None:
        self.cluster_id = cluster_id
        self._cache = cache

    @property
    def broker_ids(self) -> Set[int]:
        """The live brokers."""
        return self._cache.snapshot.nodes.keys()

    @property
    def topics(self) -> Set[str]:
        return self._cache.snapshot.partitions.keys()

    def leaders(self, topic: str) -> Mapping[int, int]:
        """The leader of each partition, by its number; negative for a partition without a leader."""
        return {index: state.leader for index, state in self._cache.snapshot.partitions.get(topic, {}).items()}


class ClientQuotaCallback(Protocol):
    """What the class must have. A subclass inherits the methods that do nothing."""

    def configure(self, configs: Mapping[str, str], /) -> None:
        """Called once before clients are served, with all settings of the broker as texts, unknown keys included."""

    @abstractmethod
    def quota_metric_tags(self, quota_type: ClientQuotaType, principal: str, client_id: str, /) -> Mapping[str, str]:
        """The tags of a client, whose principal is `User:name`. Clients with the same tags share their quota."""

    @abstractmethod
    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str], /) -> float | None:
        """The quota of the clients with these tags; None: no limit."""

    def update_quota(self, quota_type: ClientQuotaType, quota_entity: ClientQuotaEntity, new_value: float, /) -> None:
        """A quota in the metadata was set. Afterwards `quota_limit` is called for each client again."""

    def remove_quota(self, quota_type: ClientQuotaType, quota_entity: ClientQuotaEntity, /) -> None:
        """A quota in the metadata was removed. Afterwards `quota_limit` is called for each client again."""

    def quota_reset_required(self, quota_type: ClientQuotaType, /) -> bool:
        """Whether limits have changed since the last call. Called for each request: a flag, no more."""
        return False

    def update_cluster_metadata(self, cluster: Cluster, /) -> bool:
        """The metadata has changed. Returns whether limits have changed."""
        return False

    def close(self) -> None:
        """Called once when the broker stops."""


class CallbackQuotas:
    """The quotas of one type as a callback decides them. Has the methods of `QuotaLevels`."""

    __slots__ = ("_callback", "_log", "_quota_type")

    def __init__(self, callback: ClientQuotaCallback, quota_type: ClientQuotaType, clock: Clock) -> None:
        self._callback = callback
        self._quota_type = quota_type
        self._log = RateLimitedLog(logger, clock)

    def update_quota(self, entity: ClientQuotaEntity, bound: float | None) -> None:
        if bound is None:
            self._ask("remove_quota", None, lambda: self._callback.remove_quota(self._quota_type, entity))
        else:
            self._ask("update_quota", None, lambda: self._callback.update_quota(self._quota_type, entity, bound))

    def tags(self, principal: str, client_id: str) -> Tags:
        """The names and values of the callback's tags, in its order."""

        def ask() -> Tags:
            found = self._callback.quota_metric_tags(self._quota_type, principal, client_id)
            return tuple(str(text) for pair in found.items() for text in pair)

        return self._ask("quota_metric_tags", (), ask)

    def limit(self, tags: Tags) -> float | None:
        named = self.tag_names(tags)

        def ask() -> float | None:
            found = self._callback.quota_limit(self._quota_type, named)
            return None if found is None else float(found)

        return self._ask("quota_limit", None, ask)

    def tag_names(self, tags: Tags) -> dict[str, str]:
        """The tags as the callback gave them."""
        return dict(zip(tags[::2], tags[1::2], strict=True))

    def is_reset_required(self) -> bool:
        return self._ask("quota_reset_required", False, lambda: self._callback.quota_reset_required(self._quota_type))

    def _ask(self, method: str, default: T, call: Callable[[], T]) -> T:
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - a fault of an operator's class must not end the answer of a request
            self._log.warning(method, "%s of client.quota.callback.class failed: %r", method, error)
            return default

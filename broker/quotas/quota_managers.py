"""The quotas of clients of one broker, and the configs in the metadata that set them.

Kafka: QuotaFactory, QuotaConfigHandler, ClientIdConfigHandler, UserConfigHandler.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, cast

from odradek.broker.config.python_class import new_instance
from odradek.broker.quotas.client_quota_callback import ClientQuotaCallback, Cluster
from odradek.broker.quotas.client_quota_manager import ClientQuotaManager
from odradek.broker.quotas.controller_mutation_quota_manager import ControllerMutationQuotaManager
from odradek.broker.quotas.quota_entity import ClientQuotaType, client_quota_entity
from odradek.broker.quotas.request_quota_manager import ClientRequestQuotaManager
from odradek.controller.admin.client_quota_changes import CLIENT_CONFIGS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger(__name__)

CALLBACK_KEY: Final = "client.quota.callback.class"


class QuotaManagers:
    """One manager for each type of quota."""

    def __init__(self, config: BrokerConfig, clock: Clock, timer: SystemTimer) -> None:
        """Raises: StartupError if `client.quota.callback.class` cannot be loaded."""
        path = config.client_quota_callback_class
        self._callback = callback = (
            None if path is None else new_instance(CALLBACK_KEY, path, ClientQuotaCallback, config.settings)
        )

        def manager(quota_type: ClientQuotaType) -> ClientQuotaManager:
            return ClientQuotaManager(
                quota_type, clock, timer, window_count=window_count, window_ms=window_ms, callback=callback
            )

        window_count, window_ms = config.quota_window_num, config.quota_window_size_seconds * 1_000
        self.produce = manager(ClientQuotaType.PRODUCE)
        self.fetch = manager(ClientQuotaType.FETCH)
        self.request = ClientRequestQuotaManager(
            clock, timer, window_count=window_count, window_ms=window_ms, callback=callback
        )
        self.controller_mutation = ControllerMutationQuotaManager(
            clock,
            timer,
            window_count=config.controller_quota_window_num,
            window_ms=config.controller_quota_window_size_seconds * 1_000,
            callback=callback,
        )
        self._on_enabled: Callable[[], None] = _nothing

    def when_enabled(self, on_enabled: Callable[[], None]) -> None:
        """Call `on_enabled` when the first quota is set, or now with a callback: the times of requests are needed."""
        if self.request.is_enabled:
            on_enabled()
        else:
            self._on_enabled = on_enabled

    def metadata_changed(self, cluster_id: str, cache: MetadataCache) -> None:
        """An UpdateMetadata was applied."""
        if self._callback is None:
            return
        try:
            has_changed = self._callback.update_cluster_metadata(Cluster(cluster_id, cache))
        except Exception:
            logger.exception("update_cluster_metadata of %s failed", CALLBACK_KEY)
            return
        if has_changed:
            for manager in (self.fetch, self.produce, self.request, self.controller_mutation):
                manager.limits_changed()

    def close(self) -> None:
        """Close the callback."""
        if self._callback is not None:
            try:
                self._callback.close()
            except Exception:
                logger.exception("close of %s failed", CALLBACK_KEY)

    def config_changed(self, path: str, configs: Mapping[str, str]) -> None:
        """A node below `/config` has changed: of a client id, a user, or a user with a client id.

        Raises: ValueError for another path, ConfigError for a value that is no number.
        """
        match path.split("/"):
            case ["clients", client_id]:
                self._update(None, client_id, configs)
            case ["users", user]:
                self._update(user, None, configs)
            case ["users", user, _, client_id]:
                self._update(user, client_id, configs)
            case _:
                raise ValueError(f"Invalid quota entity path: {path}")

    def _update(self, user: str | None, client_id: str | None, configs: Mapping[str, str]) -> None:
        """Apply a whole node: a quota that it does not have is removed."""
        entity = client_quota_entity(user, client_id)
        self.produce.update_quota(entity, _rate(configs, "producer_byte_rate"))
        self.fetch.update_quota(entity, _rate(configs, "consumer_byte_rate"))
        if not self.request.is_enabled:
            self._on_enabled()
        self.request.update_quota(entity, _rate(configs, "request_percentage"))
        self.controller_mutation.update_quota(entity, _rate(configs, "controller_mutation_rate"))


def _rate(configs: Mapping[str, str], key: str) -> float | None:
    """Units per second. Raises: ConfigError."""
    text = configs.get(key)
    return None if text is None else float(cast("float", CLIENT_CONFIGS[key].parse(text)))


def _nothing() -> None: ...

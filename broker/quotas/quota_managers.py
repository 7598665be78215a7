"""The quotas of clients of one broker, and the configs in the metadata that set them.

Kafka: QuotaFactory, QuotaConfigHandler, ClientIdConfigHandler, UserConfigHandler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.quotas.client_quota_manager import ClientQuotaManager
from odradek.broker.quotas.quota_entity import ClientQuotaType, client_quota_entity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer


class QuotaManagers:
    """One manager for each type of quota."""

    def __init__(self, config: BrokerConfig, clock: Clock, timer: SystemTimer) -> None:
        def manager(quota_type: ClientQuotaType) -> ClientQuotaManager:
            return ClientQuotaManager(
                quota_type,
                clock,
                timer,
                window_count=config.quota_window_num,
                window_ms=config.quota_window_size_seconds * 1_000,
            )

        self.produce = manager(ClientQuotaType.PRODUCE)
        self.fetch = manager(ClientQuotaType.FETCH)

    def client_config_changed(self, name: str, configs: Mapping[str, str]) -> None:
        """The node of a client id has changed; `name` is sanitized."""
        self._update(None, name, configs)

    def user_config_changed(self, path: str, configs: Mapping[str, str]) -> None:
        """The node of a user, `<user>`, or of a user with a client id, `<user>/clients/<client-id>`, has changed.

        Raises: ValueError for another path, or for a value that is no number.
        """
        names = path.split("/")
        if len(names) == 1:
            self._update(names[0], None, configs)
        elif len(names) == 3:
            self._update(names[0], names[2], configs)
        else:
            raise ValueError(f"Invalid quota entity path: {path}")

    def _update(self, user: str | None, client_id: str | None, configs: Mapping[str, str]) -> None:
        """Apply a whole node: a quota that it does not have is removed."""
        entity = client_quota_entity(user, client_id)
        self.produce.update_quota(entity, _rate(configs, "producer_byte_rate"))
        self.fetch.update_quota(entity, _rate(configs, "consumer_byte_rate"))


def _rate(configs: Mapping[str, str], key: str) -> float | None:
    """Bytes per second, a whole number."""
    text = configs.get(key)
    return None if text is None else float(int(text))

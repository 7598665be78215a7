"""Applies configs that change in the metadata tree, each to the parts of the broker that depend on it.

Listeners that `listeners` adds or no longer names are opened or closed here, and the registration of the broker follows
the advertised ones. If a listener cannot be opened, or another broker advertises the same address, that is logged and
the registration stays as it is; the next change of the keys tries again.

Kafka: TopicConfigHandler, BrokerConfigHandler, ClientIdConfigHandler, UserConfigHandler, IpConfigHandler,
DynamicListenerConfig.reconfigure.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

from odradek.broker.config.dynamic.reconfiguration import REGISTERED_LISTENERS
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.metadata.broker_identity import registered_info
from odradek.controller.znodes import znodes
from odradek.controller.znodes.registration import RegistrationRefused, check_end_points_are_free
from odradek.storage.config.config_def import ConfigType, parse_type

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.config.dynamic.dynamic_config import DynamicBrokerConfig
    from odradek.broker.setup.sockets import Listening
    from odradek.controller.model.broker_info import BrokerInfo

logger = logging.getLogger(__name__)

IP_RATE = "connection_creation_rate"


class ConfigHandlers:
    """The handlers of one broker. `registered`: what the broker registers at its start."""

    def __init__(
        self, services: Services, dynamic: DynamicBrokerConfig, sockets: Listening, registered: BrokerInfo
    ) -> None:
        self._services = services
        self._dynamic = dynamic
        self._sockets = sockets
        self._registered = registered

    async def apply(self, kind: str, name: str, values: dict[str, str]) -> None:
        """The stored configs of an entity have changed. Implements `config_changes.OnConfigChange`."""
        services = self._services
        match kind:
            case "topics":
                services.log_manager.update_topic_config(name, values)
                if not services.replica_manager.controller_requests.replica_state_change_lock.locked():
                    services.log_manager.forget_configs_without_logs()  # LeaderAndIsr reads them before the first log
                services.replica_manager.high_watermark_reviews.topic_config_changed(name)
                if values.get("unclean.leader.election.enable", "").lower() == "true":
                    services.controller.enable_topic_unclean_leader_election(name)
            case "brokers":
                await self._broker_changed(name, values)
            case "clients" | "users":
                if kind == "users":
                    services.scram_credentials.config_changed(name, values)
                services.quotas.config_changed(f"{kind}/{name}", values)
            case "ips":
                self._ip_changed(None if name == znodes.DEFAULT_ENTITY else name, values.get(IP_RATE))

    async def _broker_changed(self, name: str, values: dict[str, str]) -> None:
        services = self._services
        changed = await self._dynamic.entity_changed(name, values, services.controller)
        services.replica_manager.fetchers.resize()
        if "min.insync.replicas" in changed:
            services.replica_manager.high_watermark_reviews.broker_config_changed()
        if changed & REGISTERED_LISTENERS:
            await self._listeners_changed()
        if changed:
            self._sockets.limits_changed()

    def _ip_changed(self, ip: str | None, text: str | None) -> None:
        rate = None if text is None else cast("int", parse_type(IP_RATE, text, ConfigType.INT))
        self._sockets.update_ip_connection_rate_quota(ip, rate)

    async def _listeners_changed(self) -> None:
        services = self._services
        try:
            await self._sockets.update_listeners()
            info = registered_info(services.config, services.broker_id, self._sockets.end_points)
            if info != self._registered:
                await check_end_points_are_free(services.controller.client, info)
                await services.controller.update_broker_info(info)
                self._registered = info
        except (StartupError, RegistrationRefused) as error:
            logger.error("The change of the listeners is not complete: %s", error)

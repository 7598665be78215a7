"""Throttles replication while replicas move: sets the limits on topics and brokers, and removes them.

Kafka: ReassignPartitionsCommand.modifyTopicThrottles, ReassignPartitionsCommand.modifyInterBrokerThrottle,
ReassignPartitionsCommand.modifyLogDirThrottle, ReassignPartitionsCommand.clearBrokerLevelThrottles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.config.keys.quotas import (
    ALTER_LOG_DIRS_BYTES_PER_SECOND,
    FOLLOWER_BYTES_PER_SECOND,
    LEADER_BYTES_PER_SECOND,
)
from odradek.broker.tools.command.failures import CommandFailed, check
from odradek.controller.model.config_codes import AlterOperation, ResourceType
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.admin.reassignment.reassignment_plan import Throttles

LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"


async def throttle_replication(client: AdminClient, throttles: Throttles, bytes_per_second: int) -> None:
    """Throttle the replicas that move, at their leaders and at their new brokers."""
    for topic in sorted(throttles.leaders):
        replicas = {LEADER_REPLICAS: throttles.leaders[topic], FOLLOWER_REPLICAS: throttles.followers[topic]}
        await _alter(client, ResourceType.TOPIC, topic, replicas)
    rates = {LEADER_BYTES_PER_SECOND: str(bytes_per_second), FOLLOWER_BYTES_PER_SECOND: str(bytes_per_second)}
    for broker_id in throttles.brokers:
        await _alter(client, ResourceType.BROKER, str(broker_id), rates)


async def throttle_log_dirs(client: AdminClient, brokers: Sequence[int], bytes_per_second: int) -> None:
    """Throttle moves between the directories of these brokers."""
    for broker_id in brokers:
        rates = {ALTER_LOG_DIRS_BYTES_PER_SECOND: str(bytes_per_second)}
        await _alter(client, ResourceType.BROKER, str(broker_id), rates)


async def clear_throttles(client: AdminClient, brokers: Sequence[int], topics: Sequence[str]) -> None:
    """Remove all throttles of these brokers and topics: also of the others when one of them fails.

    Raises: CommandFailed with each failure.
    """
    rates = (LEADER_BYTES_PER_SECOND, FOLLOWER_BYTES_PER_SECOND, ALTER_LOG_DIRS_BYTES_PER_SECOND)
    throttled: list[tuple[ResourceType, str, tuple[str, ...]]]
    throttled = [(ResourceType.BROKER, str(broker_id), rates) for broker_id in brokers]
    throttled += [(ResourceType.TOPIC, topic, (LEADER_REPLICAS, FOLLOWER_REPLICAS)) for topic in topics]
    failures = []
    for kind, name, keys in throttled:
        try:
            await _alter(client, kind, name, dict.fromkeys(keys))
        except (CommandFailed, OSError) as error:
            failures.append(str(error))
    if failures:
        raise CommandFailed(f"Not all throttles could be removed: {'; '.join(failures)}")


async def _alter(client: AdminClient, kind: int, name: str, values: Mapping[str, str | None]) -> None:
    """None deletes the config. A broker's configs are altered by that broker."""
    configs = [
        AlterableConfig(
            name=key, config_operation=AlterOperation.DELETE if value is None else AlterOperation.SET, value=value
        )
        for key, value in values.items()
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    if kind == ResourceType.BROKER:
        response = await client.ask_broker(int(name), request, IncrementalAlterConfigsResponse)
    else:
        response = await client.ask(request, IncrementalAlterConfigsResponse)
    for result in response.responses:
        check(result.error_code, result.error_message, f"Configs of {result.resource_name}")

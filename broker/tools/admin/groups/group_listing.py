"""The names of the consumer groups of a cluster.

Kafka: KafkaAdminClient.listConsumerGroups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.command.failures import check
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient

CONSUMER_PROTOCOL: Final = "consumer"


async def list_groups(client: AdminClient, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
    """The consumer groups of all brokers, by name. Raises: CommandFailed."""
    found: dict[str, ListedGroup] = {}
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    for broker_id in await client.broker_ids():
        response = await client.ask_broker(broker_id, request, ListGroupsResponse)
        check(response.error_code, None, f"Groups of broker {broker_id}")
        for group in response.groups:
            if group.protocol_type in (CONSUMER_PROTOCOL, ""):
                found[group.group_id] = group
    return [found[name] for name in sorted(found)]

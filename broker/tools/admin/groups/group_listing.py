"""The names of the consumer groups of a cluster.

Kafka: KafkaAdminClient.listConsumerGroups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.coordinators import ask_all_brokers
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient

CONSUMER_PROTOCOL: Final = "consumer"
_TRIED_AGAIN: Final = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE})


async def list_groups(client: AdminClient, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
    """The consumer groups of all brokers, by name. Raises: CommandFailed."""
    found: dict[str, ListedGroup] = {}
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))

    async def ask(broker_id: int) -> ListGroupsResponse:
        return await client.ask_broker(broker_id, request, ListGroupsResponse)

    answers = await ask_all_brokers(client, ask, tried_again=_TRIED_AGAIN, what="Groups of broker")
    for response in answers.values():
        for group in response.groups:
            if group.protocol_type in (CONSUMER_PROTOCOL, ""):
                found[group.group_id] = group
    return [found[name] for name in sorted(found)]

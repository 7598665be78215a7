"""The election of the controller: the broker that creates `/controller` is the controller until its session ends.

The ephemeral node and the next controller epoch are written in one transaction, so an epoch belongs to one controller.
The version of the epoch's node after that write is the new controller's fencing token. If the response to the write is
lost, the broker has won if `/controller` has its id and the epoch is the one it tried to write.

Kafka: KafkaZkClient.registerControllerAndIncrementControllerEpoch, KafkaController.elect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.controller.model.controller_moved import ControllerMoved
from odradek.controller.tree.metadata_tree import (
    BadVersion,
    ConnectionLoss,
    Create,
    CreateMode,
    Delete,
    Multi,
    MultiFailed,
    NodeExists,
    SetData,
)
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import MetadataClient, stat_of

if TYPE_CHECKING:
    from odradek.timer.clock import Clock


class Elected(NamedTuple):
    """A won election: the controller epoch, and the version of its node, which fences this controller's writes."""

    epoch: int
    epoch_zk_version: int


async def register_controller(client: MetadataClient, broker_id: int, clock: Clock) -> Elected:
    """Try to become the controller. Raises ControllerMoved if another broker is elected."""
    current = await client.controller_epoch()
    if current is None:
        current = await _create_controller_epoch(client)
    epoch = current[0] + 1
    become_controller = Multi(
        (
            Create(znodes.CONTROLLER, znodes.encode_controller(broker_id, clock.time_ms()), CreateMode.EPHEMERAL),
            SetData(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(epoch), current[1]),
        )
    )
    try:
        results = await client.tree.run(become_controller)
    except ConnectionLoss:
        return await _confirm(client, broker_id, epoch)
    except MultiFailed as failure:
        if not isinstance(failure.cause, NodeExists | BadVersion):
            raise
        return await _confirm(client, broker_id, epoch)
    return Elected(epoch, stat_of(results[1]).version)


async def _create_controller_epoch(client: MetadataClient) -> tuple[int, int]:
    try:
        created = await client.tree.run(Create(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(0)))
    except NodeExists:
        current = await client.controller_epoch()
        if current is None:
            raise ControllerMoved(f"{znodes.CONTROLLER_EPOCH} was deleted during the election") from None
        return current
    return 0, created.stat.version


async def _confirm(client: MetadataClient, broker_id: int, epoch: int) -> Elected:
    """Check whether a write that was refused or lost its response has made this broker the controller.

    Kafka: checkControllerAndEpoch.
    """
    controller = await client.controller()
    current = await client.controller_epoch()
    if controller is not None and current is not None and controller[0] == broker_id and current[0] == epoch:
        return Elected(epoch, current[1])
    raise ControllerMoved("another broker was elected as the controller")


async def delete_controller(client: MetadataClient, epoch_zk_version: int) -> None:
    """Delete `/controller`, so that the brokers elect a new controller. Raises ControllerMoved if they already have."""
    await client.write(epoch_zk_version, Delete(znodes.CONTROLLER))

"""The election of the controller: whoever creates `/controller` is it, for as long as its session lives.

The ephemeral node and the next controller epoch are written in one step, so an epoch belongs to one controller. The
version that the epoch's node then has is the new controller's fencing token. A winner whose answer got lost
recognises itself: the node names it and the epoch is the one it tried to write.

Kafka: the election in KafkaController and KafkaZkClient.registerControllerAndIncrementControllerEpoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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


@dataclass(frozen=True, slots=True)
class Elected:
    """A won election: the epoch, and the token that fences this controller's writes."""

    epoch: int
    epoch_zk_version: int


async def register_controller(client: MetadataClient, broker_id: int, clock: Clock) -> Elected:
    """Try to become the controller; raises ControllerMoved when another broker was faster."""
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
            raise ControllerMoved(f"{znodes.CONTROLLER_EPOCH} went away while the controller was elected") from None
        return current
    return 0, created.stat.version


async def _confirm(client: MetadataClient, broker_id: int, epoch: int) -> Elected:
    """Find out whether a write that failed or got lost made this broker the controller after all."""
    controller = await client.controller()
    current = await client.controller_epoch()
    if controller is not None and current is not None and controller[0] == broker_id and current[0] == epoch:
        return Elected(epoch, current[1])
    raise ControllerMoved("another broker was elected as the controller")


async def delete_controller(client: MetadataClient, epoch_zk_version: int) -> None:
    """Resign for everybody to see: the other brokers elect anew. Raises ControllerMoved if they did already."""
    await client.write(epoch_zk_version, Delete(znodes.CONTROLLER))

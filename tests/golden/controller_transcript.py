"""Readable transcripts of a controller: events of a cluster, and the controller's reactions.

A transcript is a text file. A line at the margin is an event; the indented lines below it are everything that followed:
the requests to each broker, in order, and the states that changed in the tree.

    create t 0:1,2
      1 <- LeaderAndIsr t-0 leader 1 epoch 0 isr 1,2 new
      t-0: leader 1 isr 1,2 epoch 0.0 ONLINE, replicas 1 ONLINE, 2 ONLINE

Events: `start N`, `kill N`, `create TOPIC P:R,R ...`, `delete TOPIC`, `isr TOPIC P R,R` (the leader proposes an ISR),
`shutdown N` (controlled), `reassign TOPIC P R,R`, `cancel TOPIC P`, `elect TOPIC P preferred|unclean`, `mute N` and
`unmute N` (a broker gives no answers). In a state, `epoch 3.5` is the leader epoch and the partition epoch.

`python -m tests.golden.controller_transcript FILE` prints the file with the present reactions; read it before you keep
it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from odradek.controller.events import ElectionType
from odradek.controller.znodes import znodes
from odradek.protocol.errors import KafkaError
from odradek.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.controller_cluster import ControllerCluster, controller_cluster
from tests.support.clusters.controller_states import shown


async def replay(text: str) -> str:
    """The transcript again, with what follows each event now."""
    lines: list[str] = []
    async with controller_cluster() as cluster:
        player = _Player(cluster)
        for line in text.splitlines():
            if line.startswith("  "):
                continue
            lines.append(line)
            if line and not line.startswith("#"):
                lines += [f"  {follows}" for follows in await player.play(line)]
    return "\n".join(lines) + "\n"


class _Player:
    def __init__(self, cluster: ControllerCluster) -> None:
        self._cluster = cluster
        self._states: dict[TopicPartition, str] = {}

    async def play(self, line: str) -> list[str]:
        command, *arguments = line.split()
        answer = await getattr(self, f"_{command}")(*arguments)
        await self._cluster.settle()
        follows = [] if answer is None else [f"answer: {answer}"]
        for broker_id, requests in sorted(self._cluster.take_requests().items()):
            follows += [f"{broker_id} <- {type(r).__name__.removesuffix('Request')} {shown(r)}" for r in requests]
        return follows + await self._changed_states()

    async def _changed_states(self) -> list[str]:
        states = await self._current_states()
        changed = [
            f"{partition}: {state}" for partition, state in states.items() if self._states.get(partition) != state
        ]
        changed += [f"{partition}: gone" for partition in self._states if partition not in states]
        self._states = states
        return changed

    async def _current_states(self) -> dict[TopicPartition, str]:
        active = [b.controller for b in self._cluster.brokers.values() if b.controller and b.controller.is_active]
        term = active[0].controllership if active else None
        if term is None:
            return {}
        stored = await term.state_nodes.read_partition_states(sorted(term.context.all_partitions))
        states: dict[TopicPartition, str] = {}
        for partition, state in stored.items():
            replicas = ", ".join(
                f"{r.replica} {term.replica_states.state(r).name}"
                for r in term.context.replicas_of_partitions([partition])
            )
            words = "no leader yet"
            if state is not None:
                leadership = state.leader_and_isr
                isr = ",".join(map(str, leadership.isr))
                epochs = f"{leadership.leader_epoch}.{leadership.partition_epoch}"
                words = f"leader {leadership.leader} isr {isr} epoch {epochs}"
            states[partition] = f"{words} {term.partition_states.state(partition).name}, replicas {replicas}"
        return states

    # Events

    async def _start(self, broker_id: str) -> None:
        await self._cluster.start(int(broker_id))

    async def _kill(self, broker_id: str) -> None:
        await self._cluster.kill(int(broker_id))

    async def _mute(self, broker_id: str) -> None:
        self._cluster.brokers[int(broker_id)].answers = False

    async def _unmute(self, broker_id: str) -> None:
        self._cluster.brokers[int(broker_id)].answers = True

    async def _create(self, topic: str, *partitions: str) -> None:
        assignment = {int(p): _ids(replicas) for p, replicas in (item.split(":") for item in partitions)}
        await self._cluster.create(topic, assignment, timeout_ms=0)

    async def _delete(self, topic: str) -> None:
        await self._cluster.client.create_recursive(znodes.delete_topic_path(topic))

    async def _isr(self, topic: str, partition: str, isr: str) -> str:
        leader, _, leader_epoch, partition_epoch = await self._cluster.state(topic, int(partition))
        proposal = RequestPartitionData(
            partition_index=int(partition),
            leader_epoch=leader_epoch,
            partition_epoch=partition_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=replica) for replica in _ids(isr)],
        )
        term = self._cluster.controller.controllership
        assert term is not None
        request = AlterPartitionRequest(
            broker_id=leader,
            broker_epoch=term.context.broker_epoch(leader) or -1,
            topics=[RequestTopicData(topic_id=term.context.topic_ids[topic], partitions=[proposal])],
        )
        response = await self._cluster.controller.alter_partition(request, 3)
        return str(response.topics[0].partitions[0].error_code)

    async def _shutdown(self, broker_id: str) -> str:
        remaining = await self._cluster.controller.controlled_shutdown(int(broker_id), -1)
        return "still leads " + (", ".join(map(str, remaining)) or "nothing")

    async def _reassign(self, topic: str, partition: str, target: str) -> str | None:
        return await self._alter_reassignment(TopicPartition(topic, int(partition)), _ids(target))

    async def _cancel(self, topic: str, partition: str) -> str | None:
        return await self._alter_reassignment(TopicPartition(topic, int(partition)), None)

    async def _alter_reassignment(self, partition: TopicPartition, target: tuple[int, ...] | None) -> str | None:
        error = (await self._cluster.reassign({partition: target}))[partition]
        return None if error is None else error.code.name

    async def _elect(self, topic: str, partition: str, election_type: str) -> str:
        wanted = TopicPartition(topic, int(partition))
        kind = ElectionType[election_type.upper()]
        result = (await self._cluster.controller.elect_leaders(frozenset({wanted}), kind))[wanted]
        return result.code.name if isinstance(result, KafkaError) else f"leader {result}"


def _ids(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def main() -> None:
    for name in sys.argv[1:]:
        sys.stdout.write(asyncio.run(replay(Path(name).read_text())))


if __name__ == "__main__":
    main()

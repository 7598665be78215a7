"""LeaderAndIsr, StopReplica and UpdateMetadata over the wire, in every form their versions have had."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.apis.cluster import leader_and_isr as leader_and_isr_api
from odradek.broker.apis.cluster.leader_and_isr import SLICE
from odradek.broker.partition.partition import Partition
from odradek.controller.tree.metadata_tree import ConnectionLoss, TreeError
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.file_system import OsFileSystem
from odradek.timer.sliced_work import SLICE_MS
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker, no_bugs_logged
from tests.support.wire.requests import build

NONE = ErrorCode.NONE
TOPIC_ID = bytes(range(16))
TP = TopicPartition("x", 0)
EPOCH = 1  # of the controller that the broker under test is itself
DURING_DELETE = -2
TRANSACTIONS = "__transaction_state"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    with in_process_broker(tmp_path) as broker, no_bugs_logged():
        yield broker


def leader_and_isr(
    version: int, *, epoch: int = 0, controller_epoch: int = EPOCH, topic: str = "x", **changes: object
) -> Request:
    state: dict[str, object] = {
        "partition_index": 0,
        "leader": 0,
        "leader_epoch": epoch,
        "partition_epoch": epoch,
        "isr": [0],
        "replicas": [0],
        "controller_epoch": controller_epoch,
    }
    if version >= 1:
        state["is_new"] = True
    broker_epoch = changes.pop("broker_epoch", -1)
    state |= changes
    fields: dict[str, object] = {"controller_id": 0, "controller_epoch": controller_epoch}
    if version >= 2:
        fields["broker_epoch"] = broker_epoch
        topic_state: dict[str, object] = {"topic_name": topic, "partition_states": [state]}
        if version >= 5:
            topic_state["topic_id"] = TOPIC_ID
        fields["topic_states"] = [topic_state]
    else:
        fields["ungrouped_partition_states"] = [state | {"topic_name": topic}]
    return build(ApiKey.LEADER_AND_ISR, **fields)


def partition_errors(response: Response, version: int) -> list[tuple[str | bytes, int]]:
    """(topic or its id, error) of each partition."""
    if version < 5:
        return [(part.topic_name, part.error_code) for part in response.partition_errors]  # type: ignore[attr-defined]
    return [
        (topic.topic_id, part.error_code)
        for topic in response.topics  # type: ignore[attr-defined]
        for part in topic.partition_errors
    ]


@pytest.mark.parametrize("version", range(8))
def test_leading_begins_and_the_same_state_again_is_stale(broker: InProcessBroker, version: int) -> None:
    name = TOPIC_ID if version >= 5 else "x"
    response = broker.call(leader_and_isr(version), version)
    assert response.error_code == NONE  # type: ignore[attr-defined]
    assert partition_errors(response, version) == [(name, NONE)]
    partition = broker.services.replica_manager.partition(TP)
    assert partition.is_leader
    assert partition.topic_id == (TOPIC_ID if version >= 5 else None)
    again = broker.call(leader_and_isr(version), version)
    assert partition_errors(again, version) == [(name, ErrorCode.STALE_CONTROLLER_EPOCH)]


@pytest.mark.parametrize("version", [1, 4, 7])
def test_older_controller_is_refused_with_every_partition(broker: InProcessBroker, version: int) -> None:
    response = broker.call(leader_and_isr(version, controller_epoch=EPOCH - 1), version)
    stale = ErrorCode.STALE_CONTROLLER_EPOCH
    assert response.error_code == stale  # type: ignore[attr-defined]
    assert [error for _, error in partition_errors(response, version)] == [stale]
    assert broker.services.replica_manager.hosted(TP) is None


def test_request_for_an_earlier_life_of_the_broker_is_refused(broker: InProcessBroker) -> None:
    epoch = broker.services.controller.broker_epoch
    stale = broker.call(leader_and_isr(7, broker_epoch=epoch - 1), 7)
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH  # type: ignore[attr-defined]
    assert broker.call(leader_and_isr(7, broker_epoch=epoch + 1), 7).error_code == NONE  # type: ignore[attr-defined]


@pytest.mark.parametrize("topic", ["../x", "a/b", "", "."])
def test_name_that_would_leave_the_directory_is_refused(broker: InProcessBroker, topic: str) -> None:
    response = broker.call(leader_and_isr(7, topic=topic), 7)
    assert partition_errors(response, 7) == [(TOPIC_ID, ErrorCode.INVALID_TOPIC_EXCEPTION)]
    assert list(broker.services.log_manager.all_logs()) == []


def test_partition_below_zero_is_refused(broker: InProcessBroker) -> None:
    response = broker.call(leader_and_isr(7, partition_index=-1), 7)
    assert partition_errors(response, 7) == [(TOPIC_ID, ErrorCode.INVALID_TOPIC_EXCEPTION)]


def test_partition_that_is_assigned_to_others_is_not_hosted(broker: InProcessBroker) -> None:
    response = broker.call(leader_and_isr(7, replicas=[1, 2], leader=1), 7)
    assert partition_errors(response, 7) == [(TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert list(broker.services.replica_manager.online_partitions()) == []


@pytest.mark.parametrize("newer", [{"retention.ms": "2"}, {}])
def test_a_config_that_changes_while_it_is_read_stays(broker: InProcessBroker, newer: dict[str, str]) -> None:
    """Nothing would correct it later: there is one notification for a change."""
    log_manager = broker.services.log_manager

    async def overrides(topics: Sequence[str]) -> dict[str, dict[str, str]]:
        if "x" in topics:
            log_manager.update_topic_config("x", newer)
        return {topic: {"retention.ms": "1"} for topic in topics}

    default = log_manager.config_of("x").retention_ms
    broker.services.topic_overrides = overrides
    broker.call(leader_and_isr(7), 7)
    broker.call(leader_and_isr(7, topic="y"), 7)
    assert log_manager.config_of("x").retention_ms == int(newer.get("retention.ms", default))
    assert log_manager.config_of("y").retention_ms == 1


def test_a_topic_whose_config_has_a_value_that_is_no_string_gets_no_log(broker: InProcessBroker) -> None:
    """Its records could be deleted with the defaults."""
    client, data = broker.services.controller.client, b'{"config":{"retention.ms":-1}}'
    broker.run(client.create_recursive("/config/topics/x", data))
    answer = broker.call(leader_and_isr(7), 7)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR  # type: ignore[attr-defined]
    assert broker.services.log_manager.all_logs() == []


def test_the_config_of_a_partition_in_an_offline_directory_is_not_read(broker: InProcessBroker) -> None:
    """One that cannot be read would refuse all partitions of the request."""
    broker.call(leader_and_isr(7), 7)
    (log,) = broker.services.log_manager.all_logs()
    broker.services.replica_manager.partitions.take_offline(log.topic_partition)
    broker.services.log_manager._logs.clear()
    data = b'{"config":{"retention.ms":-1}}'
    broker.run(broker.services.controller.client.create_recursive("/config/topics/x", data))
    answer = broker.call(leader_and_isr(7), 7)
    assert answer.error_code == ErrorCode.NONE  # type: ignore[attr-defined]


def test_requests_read_configs_one_after_the_other(broker: InProcessBroker) -> None:
    """Else what an earlier one has read could replace what a later one has read, of a topic that was created anew."""
    reads: list[asyncio.Event] = []

    async def overrides(topics: Sequence[str]) -> dict[str, dict[str, str]]:
        reads.append(asyncio.Event())
        await reads[-1].wait()
        return {}

    broker.services.topic_overrides = overrides
    first, second = (broker.send(leader_and_isr(7, topic=topic), 7) for topic in ("x", "y"))
    assert not broker.settle(lambda: len(reads) > 1)
    reads[0].set()
    assert broker.settle(lambda: len(reads) > 1)
    reads[1].set()
    assert broker.settle(lambda: first.is_answered and second.is_answered)


def test_the_response_waits_for_the_disk_only_if_there_is_a_new_log(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the death of a broker, UpdateMetadata would else wait for the leader epochs of thousands of logs."""
    waiting: list[Callable[[OSError | None], None]] = []
    log_manager = type(broker.services.log_manager)
    monkeypatch.setattr(log_manager, "when_durable", lambda self, callback: waiting.append(callback))
    answers: list[Response] = []

    def apply(epoch: int) -> None:
        request = leader_and_isr(7, epoch=epoch)
        broker.run(leader_and_isr_api.apply(broker.services, request, 7, answers.append))  # type: ignore[arg-type]

    apply(0)
    assert (len(waiting), answers) == (1, [])
    waiting.pop()(None)
    apply(1)
    assert (waiting, [partition_errors(answer, 7) for answer in answers]) == ([], [[(TOPIC_ID, NONE)]] * 2)


def test_coordinator_is_elected_when_leading_begins_and_not_with_every_epoch(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    elected: list[tuple[int, int]] = []
    coordinator = type(broker.services.group_coordinator)
    monkeypatch.setattr(coordinator, "on_elected", lambda self, partition, epoch: elected.append((partition, epoch)))
    for epoch in (0, 1):
        broker.call(leader_and_isr(7, topic="__consumer_offsets", epoch=epoch), 7)
    assert elected == [(0, 0)]


def test_the_number_of_transaction_partitions_is_read_before_one_is_elected(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what could not be read changes nothing."""
    answers: list[dict[str, int] | TreeError] = [{TRANSACTIONS: 7}, ConnectionLoss(), {}]
    states = broker.services.transaction_coordinator.states
    monkeypatch.setattr(states, "elect", lambda partition, epoch: elected.append(states.topic_partition_count))
    elected: list[int | None] = []

    async def counts(topics: Collection[str]) -> dict[str, int]:
        assert set(topics) == {TRANSACTIONS}
        answer = answers.pop(0)
        if isinstance(answer, TreeError):
            raise answer
        return answer

    broker.services.topic_partition_counts = counts
    broker.call(leader_and_isr(7), 7)
    assert len(answers) == 3, "no other topic needs it"
    for number in range(3):
        broker.call(leader_and_isr(7, topic=TRANSACTIONS, partition_index=number), 7)
    assert elected == [7, 7, None]
    broker.call(leader_and_isr(7, topic=TRANSACTIONS, partition_index=2, epoch=1), 7)  # else `answers` is too short
    tree = type(broker.services.controller.client.tree)
    monkeypatch.setattr(tree, "is_disconnected", property(lambda self: True))
    broker.call(leader_and_isr(7, topic=TRANSACTIONS, partition_index=3), 7)
    assert elected == [7, 7, None, None], "an operation would wait for the connection"


# StopReplica


def stop_replica(
    version: int, *, epoch: int = DURING_DELETE, delete: bool = True, controller_epoch: int = EPOCH, **header: object
) -> Request:
    fields: dict[str, object] = {"controller_id": 0, "controller_epoch": controller_epoch, **header}
    if version == 0:
        fields |= {"delete_partitions": delete, "ungrouped_partitions": [{"topic_name": "x", "partition_index": 0}]}
    elif version <= 2:
        fields |= {"delete_partitions": delete, "topics": [{"name": "x", "partition_indexes": [0]}]}
    else:
        state = {"partition_index": 0, "leader_epoch": epoch, "delete_partition": delete}
        fields["topic_states"] = [{"topic_name": "x", "partition_states": [state]}]
    return build(ApiKey.STOP_REPLICA, **fields)


def stopped(response: Response) -> list[tuple[str, int, int]]:
    return [(p.topic_name, p.partition_index, p.error_code) for p in response.partition_errors]  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", range(5))
def test_deleted_replica_is_gone(broker: InProcessBroker, version: int) -> None:
    broker.call(leader_and_isr(7), 7)
    response = broker.call(stop_replica(version), version)
    assert (response.error_code, stopped(response)) == (NONE, [("x", 0, NONE)])  # type: ignore[attr-defined]
    assert broker.services.replica_manager.hosted(TP) is None
    assert broker.services.log_manager.get_log(TP) is None


def test_a_deletion_that_is_not_durable_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller would take the topic for deleted, and after a loss of power the log would be there again."""
    dirs = {"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"}
    with in_process_broker(tmp_path, dirs) as broker, no_bugs_logged():
        broker.call(leader_and_isr(7), 7)
        log = broker.services.log_manager.get_log(TP)
        assert log is not None
        log_dir = log.log_dir
        sync_dir = OsFileSystem.sync_dir

        def sync(self: OsFileSystem, path: str) -> None:
            if path == log_dir.path:
                raise OSError(5, "Input/output error")
            sync_dir(self, path)

        monkeypatch.setattr(OsFileSystem, "sync_dir", sync)
        assert stopped(broker.call(stop_replica(4), 4)) == [("x", 0, ErrorCode.KAFKA_STORAGE_ERROR)]
        assert not log_dir.is_online


def test_stopped_replica_that_is_not_deleted_keeps_its_log(broker: InProcessBroker) -> None:
    broker.call(leader_and_isr(7), 7)
    assert stopped(broker.call(stop_replica(4, epoch=0, delete=False), 4)) == [("x", 0, NONE)]
    assert broker.services.log_manager.get_log(TP) is not None


def test_older_leader_epoch_is_fenced(broker: InProcessBroker) -> None:
    broker.call(leader_and_isr(7, epoch=3), 7)
    assert stopped(broker.call(stop_replica(4, epoch=2), 4)) == [("x", 0, ErrorCode.FENCED_LEADER_EPOCH)]
    assert broker.services.replica_manager.hosted(TP) is not None


def test_replica_that_is_not_there_is_stopped(broker: InProcessBroker) -> None:
    assert stopped(broker.call(stop_replica(4), 4)) == [("x", 0, NONE)]


def test_older_controller_stops_nothing(broker: InProcessBroker) -> None:
    broker.call(leader_and_isr(7), 7)
    response = broker.call(stop_replica(4, controller_epoch=EPOCH - 1), 4)
    assert (response.error_code, stopped(response)) == (ErrorCode.STALE_CONTROLLER_EPOCH, [])  # type: ignore[attr-defined]
    assert broker.services.replica_manager.hosted(TP) is not None


def test_stop_replica_with_an_old_broker_epoch_is_refused(broker: InProcessBroker) -> None:
    broker.call(leader_and_isr(7), 7)
    epoch = broker.services.controller.broker_epoch
    stale = broker.call(stop_replica(4, broker_epoch=epoch - 1), 4)
    assert (stale.error_code, stopped(stale)) == (ErrorCode.STALE_BROKER_EPOCH, [])  # type: ignore[attr-defined]
    assert broker.services.replica_manager.hosted(TP) is not None
    assert stopped(broker.call(stop_replica(4, broker_epoch=epoch), 4)) == [("x", 0, NONE)]


# UpdateMetadata


def update_metadata(
    version: int, *, leader: int = 0, controller_epoch: int = EPOCH, alive: Sequence[int] = (0,), **header: object
) -> Request:
    state: dict[str, object] = {
        "partition_index": 0,
        "controller_epoch": controller_epoch,
        "leader": leader,
        "isr": [0],
        "replicas": [0],
    }
    fields: dict[str, object] = {"controller_id": 3, "controller_epoch": controller_epoch, **header}
    if version >= 5:
        topic_state: dict[str, object] = {"topic_name": "x", "partition_states": [state]}
        if version >= 7:
            topic_state["topic_id"] = TOPIC_ID
        fields["topic_states"] = [topic_state]
    else:
        fields["ungrouped_partition_states"] = [state | {"topic_name": "x"}]
    live: dict[str, object] = {}
    if version == 0:
        live |= {"v0_host": "h", "v0_port": 1}
    else:
        end_point: dict[str, object] = {"port": 1, "host": "h", "security_protocol": 0}
        if version >= 3:
            end_point["listener"] = "PLAINTEXT"
        live["endpoints"] = [end_point]
    return build(ApiKey.UPDATE_METADATA, live_brokers=[{"id": broker_id, **live} for broker_id in alive], **fields)


@pytest.mark.parametrize("version", range(9))
def test_metadata_is_known_afterwards_and_forgotten_with_leader_minus_two(
    broker: InProcessBroker, version: int
) -> None:
    assert broker.call(update_metadata(version), version).error_code == NONE  # type: ignore[attr-defined]
    cache = broker.services.metadata_cache
    assert cache.contains_partition("x", 0)
    assert cache.topic_id("x") == (TOPIC_ID if version >= 7 else ZERO_UUID)
    assert cache.snapshot.controller_id == 3
    node = cache.snapshot.node(0, "PLAINTEXT")
    assert node is not None
    assert (node.host, node.port) == ("h", 1)
    broker.call(update_metadata(version, leader=DURING_DELETE), version)
    assert not cache.contains("x")


def test_high_watermarks_are_looked_at_when_brokers_have_died(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    died: list[set[int]] = []
    reviews = type(broker.services.replica_manager.high_watermark_reviews)
    monkeypatch.setattr(reviews, "brokers_died", lambda self, broker_ids: died.append(set(broker_ids)))
    for alive in ((0, 1, 2), (0, 2), (0, 1)):
        broker.call(update_metadata(8, alive=alive), 8)
    assert died == [set(), {1}, {2}]


def test_older_controller_tells_nothing(broker: InProcessBroker) -> None:
    response = broker.call(update_metadata(8, controller_epoch=EPOCH - 1), 8)
    assert response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH  # type: ignore[attr-defined]
    assert not broker.services.metadata_cache.contains("x")


def test_update_metadata_with_an_old_broker_epoch_is_refused(broker: InProcessBroker) -> None:
    epoch = broker.services.controller.broker_epoch
    stale = broker.call(update_metadata(8, broker_epoch=epoch - 1), 8)
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH  # type: ignore[attr-defined]
    assert not broker.services.metadata_cache.contains("x")
    assert broker.call(update_metadata(8, broker_epoch=epoch), 8).error_code == NONE  # type: ignore[attr-defined]


@pytest.mark.parametrize("disk", ["quick", "slow"])
def test_many_partitions_are_applied_in_slices_between_which_the_loop_has_its_turn(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, disk: str
) -> None:
    if disk == "slow":
        make_leader, time, late_s = Partition.make_leader, broker.loop.time, 0.0

        def slowly(partition: Partition, *rest: Any) -> bool:
            nonlocal late_s
            late_s += SLICE_MS / 1000
            return make_leader(partition, *rest)

        monkeypatch.setattr(Partition, "make_leader", slowly)
        monkeypatch.setattr(broker.loop, "time", lambda: time() + late_s)
    states = [
        {
            "partition_index": index,
            "leader": 0,
            "isr": [0],
            "replicas": [0],
            "controller_epoch": EPOCH,
            "is_new": True,
        }
        for index in range(2 * SLICE + 1)
    ]
    request = build(
        ApiKey.LEADER_AND_ISR,
        controller_epoch=EPOCH,
        broker_epoch=-1,
        topic_states=[{"topic_name": "x", "topic_id": TOPIC_ID, "partition_states": states}],
    )
    hosted_at_turn: list[int] = []

    async def apply() -> Response:
        answers: list[Response] = []
        work = asyncio.ensure_future(leader_and_isr_api.apply(broker.services, request, 7, answers.append))
        while not work.done():
            hosted_at_turn.append(len(list(broker.services.replica_manager.online_partitions())))
            await asyncio.sleep(0)
        while not answers:
            await asyncio.sleep(0)
        return answers[0]

    response = broker.run(apply())
    assert len(partition_errors(response, 7)) == len(states)
    if disk == "slow":
        assert {*hosted_at_turn} == {*range(len(states) + 1)}
    else:
        assert {SLICE, 2 * SLICE} <= {*hosted_at_turn}

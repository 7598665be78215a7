"""Sessions with resting partitions, compared with sessions that read all partitions at every fetch.

Two leaders live through the same. In one of them no partition ever rests: each fetch reads whatever its session has, as
Apache Kafka does. The answers have to be the same, and what the leaders know of their followers.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.broker.apis.records import fetch
from odradek.broker.apis.services import Services
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.fetch.fetch_session_cache import FetchSessionCache
from odradek.broker.fetch.log_reads import LogReads
from odradek.broker.network.requests.request import RequestContext
from odradek.broker.quotas.quota_managers import QuotaManagers
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.headers import RequestHeader
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from odradek.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from odradek.protocol.records.batch import batches
from odradek.protocol.records.control import ControlRecordType
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import AppendOrigin
from odradek.timer.sliced_work import Steps, run_through
from tests.support.disks.logs import batch, marker
from tests.support.in_process.in_process_broker import FakeConnection
from tests.support.in_process.replication.replicas import OWN_ID, TOPIC_ID, Replicas

VERSION: Final = 17
PARTITIONS: Final = 4
MAX_SESSIONS: Final = 4
ALL: Final = [OWN_ID, 1, 2]
TPS: Final = [TopicPartition("t", index) for index in range(PARTITIONS)]

# Name, broker id (negative: a consumer), isolation level.
READERS: Final = [("first", 1, 0), ("second", 2, 0), ("consumer", -1, 0), ("committed", -1, 1)]


class FullReads(LogReads):
    """Lets no partition rest."""

    def let_rest(self, *_: object) -> Steps:
        yield from ()


class World:
    """A leader and the answers it has given."""

    def __init__(self, path: Path, *, rests: bool) -> None:
        self.replicas = Replicas(path, {"segment.bytes": "400"})
        if not rests:
            self.replicas.manager.reads.__class__ = FullReads
        self.connection = FakeConnection()
        self.services = cast(
            "Services",
            SimpleNamespace(
                authorizer=None,
                broker_id=OWN_ID,
                replica_manager=self.replicas.manager,
                metadata_cache=self.replicas.cache,
                clock=self.replicas.disk.clock,
                in_slices=lambda ctx, request, work: run_through(work),
                config=SimpleNamespace(
                    fetch_max_bytes=1 << 20, listeners=SimpleNamespace(advertise_connected_address=False)
                ),
                quotas=QuotaManagers(BrokerConfig({}), self.replicas.disk.clock, self.replicas.disk.timer),
                fetch_sessions=FetchSessionCache(MAX_SESSIONS, random.Random(1).randint),
            ),
        )
        self.replicas.manager.startup()

    def fetch(self, number: int, request: FetchRequest) -> None:
        header = RequestHeader(ApiKey.FETCH, VERSION, number, "client")
        fetch.handle(self.services, RequestContext(header, self.connection, 0, 100), request)

    def answer(self, number: int) -> FetchResponse | None:
        return cast("FetchResponse | None", self.connection.answers.get(number))

    def known(self) -> list[object]:
        """The state of each partition that is visible beside the answers."""
        seen: list[object] = [len(self.services.fetch_sessions), self.services.fetch_sessions.total_partitions]
        for tp in TPS:
            partition = self.replicas.manager.hosted(tp)
            if partition is None or partition.log is None:
                seen.append(None)
                continue
            seen.append((partition.log.high_watermark, partition.in_sync.isr, partition.in_sync.state.maximal_isr))
            seen.extend(
                (each.end_offset, each.log_start_offset, each.last_caught_up_ms, each.last_fetch_ms, each.broker_epoch)
                for each in partition.in_sync.replicas.values()
            )
        return seen


class ReaderModel:
    """A client with a session: its position in each partition, and the last one that it sent to the leader."""

    def __init__(self, broker_id: int, isolation: int) -> None:
        self.broker_id = broker_id
        self.isolation = isolation
        self.broker_epoch = 10
        self.session = self.epoch = 0
        self.offsets = dict.fromkeys(range(PARTITIONS), 0)
        self.told: dict[int, int] = {}
        self.number: int | None = None

    def request(
        self, named: set[int], forgotten: set[int], max_wait_ms: int, min_bytes: int, max_bytes: int, epochs: list[int]
    ) -> FetchRequest:
        is_full = self.epoch == 0
        if is_full:
            self.told = {}
        wanted = {index for index in self.offsets if self.told.get(index) != self.offsets[index]} | named
        forgotten = (forgotten & self.told.keys()) - {0}
        wanted -= forgotten
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=self.isolation,
            session_id=self.session,
            session_epoch=self.epoch,
            topics=[
                FetchTopic(
                    topic_id=TOPIC_ID,
                    partitions=[
                        FetchPartition(
                            partition=index,
                            fetch_offset=self.offsets[index],
                            current_leader_epoch=epochs[index],
                            partition_max_bytes=300,
                            log_start_offset=0 if self.broker_id >= 0 else -1,
                        )
                        for index in sorted(wanted)
                    ],
                )
            ]
            if wanted
            else [],
            forgotten_topics_data=[ForgottenTopic(topic_id=TOPIC_ID, partitions=sorted(forgotten))]
            if forgotten
            else [],
        )
        if self.broker_id >= 0:
            request.replica_state.replica_id = self.broker_id
            request.replica_state.replica_epoch = self.broker_epoch
        self.told.update((index, self.offsets[index]) for index in wanted)
        for index in forgotten:
            del self.told[index]
        return request

    def take(self, response: FetchResponse) -> None:
        self.number = None
        if response.error_code != ErrorCode.NONE:
            self.session = self.epoch = 0
            return
        self.session = response.session_id
        self.epoch = self.epoch + 1 if response.session_id else 0
        for topic in response.responses:
            for data in topic.partitions:
                records = memoryview(cast("bytes", data.records or b""))
                for each in batches(records):
                    self.offsets[data.partition_index] = max(self.offsets[data.partition_index], each.last_offset + 1)
                if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    self.offsets[data.partition_index] = 10**6  # wait for it to be reset below

    def close_session(self, *, keeps_id: bool) -> None:
        self.epoch = 0
        if not keeps_id:
            self.session = 0


indexes = st.integers(0, PARTITIONS - 1)
some = st.sets(indexes, max_size=2)
readers = st.integers(0, len(READERS) - 1)


class SessionsAgainstFullReads(RuleBasedStateMachine):
    """Random appends, fetches, elections, deletions; every step in both worlds."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory(prefix="odradek-sessions-")
        path = Path(self.directory.name)
        self.resting, self.full = World(path / "resting", rests=True), World(path / "full", rests=False)
        self.worlds = (self.resting, self.full)
        self.readers = [ReaderModel(broker_id, isolation) for _, broker_id, isolation in READERS]
        self.epochs = [0] * PARTITIONS
        self.partition_epochs = [0] * PARTITIONS
        self.is_led = [True] * PARTITIONS
        self.open_transactions: dict[int, int] = {}
        self.sequences = [0] * PARTITIONS
        self.number = 0
        for index in range(PARTITIONS):
            self.lead(index, list(ALL))

    def lead(self, index: int, isr: Sequence[int]) -> None:
        self.is_led[index] = True
        for world in self.worlds:
            world.replicas.lead(
                TPS[index],
                epoch=self.epochs[index],
                partition_epoch=self.partition_epochs[index],
                replicas=ALL,
                isr=isr,
            )

    @rule(index=indexes, count=st.integers(1, 3), acks=st.sampled_from([1, -1]))
    def append(self, index: int, count: int, acks: int) -> None:
        for world in self.worlds:
            world.replicas.append(batch(*[b"v" * 30] * count), TPS[index], acks=acks)

    @rule(index=indexes)
    def append_in_transaction(self, index: int) -> None:
        producer = {"producer_id": index, "producer_epoch": 0, "base_sequence": self.sequences[index]}
        self.sequences[index] += 1
        self.open_transactions[index] = index
        for world in self.worlds:
            world.replicas.append(batch(b"txn", is_transactional=True, **producer), TPS[index])

    @precondition(lambda self: self.open_transactions)
    @rule(commits=st.booleans())
    def end_transaction(self, commits: bool) -> None:
        index, _ = self.open_transactions.popitem()
        kind = ControlRecordType.COMMIT if commits else ControlRecordType.ABORT
        for world in self.worlds:
            partition = world.replicas.manager.hosted(TPS[index])
            if partition is None or partition.log is None or not partition.is_leader:
                continue
            with_marker = marker(kind, producer_id=index)
            try:
                partition.append_as_leader(with_marker, AppendOrigin.COORDINATOR, 1)
            except KafkaError:
                continue
            world.replicas.manager.complete_delayed(TPS[index])

    @rule(
        who=readers,
        named=some,
        forgotten=some,
        max_wait_ms=st.sampled_from([0, 500, 500]),
        min_bytes=st.sampled_from([1, 1, 150]),
        max_bytes=st.sampled_from([1 << 20, 1 << 20, 200, -1]),
    )
    def fetch(
        self, who: int, named: set[int], forgotten: set[int], max_wait_ms: int, min_bytes: int, max_bytes: int
    ) -> None:
        self.ask(who, named, forgotten, max_wait_ms, min_bytes, max_bytes)

    @rule(who=readers)
    def fetch_all_there_is(self, who: int) -> None:
        for _ in range(4):
            self.ask(who, set(), set(), 0, 1, 1 << 20)

    def ask(
        self, who: int, named: set[int], forgotten: set[int], max_wait_ms: int, min_bytes: int, max_bytes: int
    ) -> None:
        reader = self.readers[who]
        if reader.number is not None:
            return
        self.number += 1
        reader.number = self.number
        epochs = self.epochs if reader.broker_id >= 0 else [-1] * PARTITIONS
        request = reader.request(named, forgotten, max_wait_ms, min_bytes, max_bytes, epochs)
        for world in self.worlds:
            world.fetch(self.number, request)
        self.take_answers()

    @rule(who=readers, keeps_id=st.booleans())
    def begin_anew(self, who: int, keeps_id: bool) -> None:
        if self.readers[who].number is None:
            self.readers[who].close_session(keeps_id=keeps_id)

    @rule(who=st.integers(0, 1))
    def follower_is_started_again(self, who: int) -> None:
        reader = self.readers[who]
        if reader.number is None:
            reader.broker_epoch += 1
            reader.close_session(keeps_id=False)

    @rule(who=st.integers(0, 1), index=indexes, back=st.integers(1, 3))
    def follower_is_cut(self, who: int, index: int, back: int) -> None:
        if self.readers[who].number is None:
            offsets = self.readers[who].offsets
            offsets[index] = max(0, min(offsets[index], 10**5) - back)

    @rule(ms=st.sampled_from([1, 100, 501, 8_000, 31_000]))
    def time_passes(self, ms: int) -> None:
        for world in self.worlds:
            world.replicas.advance(ms)
        self.take_answers()

    @rule(index=indexes)
    def delete_records(self, index: int) -> None:
        for world in self.worlds:
            world.replicas.manager.delete_records(0, {TPS[index]: -1}, lambda results: None)

    @rule(index=indexes)
    def roll(self, index: int) -> None:
        for world in self.worlds:
            partition = world.replicas.manager.hosted(TPS[index])
            if partition is not None and partition.log is not None and partition.log.segments.active.size:
                partition.log.roll()

    @rule(index=indexes, isr=st.sampled_from([[0, 1, 2], [0, 1], [0]]))
    def new_epoch(self, index: int, isr: list[int]) -> None:
        self.epochs[index] += 1
        self.partition_epochs[index] += 1
        self.lead(index, isr)
        self.take_answers()

    @rule(index=indexes)
    def another_leads(self, index: int) -> None:
        self.epochs[index] += 1
        self.partition_epochs[index] += 1
        self.is_led[index] = False
        for world in self.worlds:
            world.replicas.state(
                TPS[index],
                leader=1,
                epoch=self.epochs[index],
                partition_epoch=self.partition_epochs[index],
                replicas=ALL,
            )
        self.take_answers()

    @rule(index=indexes)
    def stop(self, index: int) -> None:
        for world in self.worlds:
            world.replicas.stop(TPS[index])
        self.sequences[index] = 0
        self.open_transactions.pop(index, None)
        self.take_answers()

    @rule(index=indexes)
    def vanish_from_the_metadata(self, index: int) -> None:
        gone = UpdateMetadataPartitionState(partition_index=index, leader=-2)
        for world in self.worlds:
            request = UpdateMetadataRequest(
                live_brokers=[
                    UpdateMetadataBroker(id=broker_id, endpoints=[UpdateMetadataEndpoint(port=1, host="h")])
                    for broker_id in ALL
                ],
                topic_states=[
                    UpdateMetadataTopicState(topic_name="t", topic_id=TOPIC_ID, partition_states=[gone]),
                ],
            )
            world.replicas.manager.partitions.announce(world.replicas.cache.update(request))
        self.take_answers()

    @rule(accepts=st.booleans())
    def controller_answers(self, accepts: bool) -> None:
        for world in self.worlds:
            for proposal in world.replicas.proposals:
                if accepts:
                    proposal.accept()
                    index = proposal.topic_partition.partition
                    self.partition_epochs[index] = proposal.proposed.partition_epoch + 1
                else:
                    proposal.respond(ErrorCode.OPERATION_NOT_ATTEMPTED)
            world.replicas.proposals.clear()

    def take_answers(self) -> None:
        for reader in self.readers:
            if reader.number is None:
                continue
            answer = self.resting.answer(reader.number)
            assert answer == self.full.answer(reader.number)
            if answer is not None:
                reader.take(answer)

    @invariant()
    def same(self) -> None:
        self.take_answers()
        assert self.resting.known() == self.full.known()
        assert [each.proposed for each in self.resting.replicas.proposals] == [
            each.proposed for each in self.full.replicas.proposals
        ]

    @invariant()
    def nobody_rests_unwatched(self) -> None:
        sessions = self.resting.services.fetch_sessions._sessions.values()
        for session in sessions:
            resting = {each for each in session.partitions.values() if each.is_resting}
            assert resting.isdisjoint(session.awake)
            assert len(resting) + len(session.awake) == len(session.partitions)
        watched = sum(len(partition.news) for partition in self.resting.replicas.manager.online_partitions())
        closing = sum(
            each.is_resting
            for waiting in {id(op): op for op in _waiting(self.resting)}.values()
            if waiting._session is not None and waiting._session.is_closed
            for each in waiting._session.partitions.values()
        )
        assert watched == sum(len(session.partitions) - len(session.awake) for session in sessions) + closing

    def teardown(self) -> None:
        self.directory.cleanup()


def _waiting(world: World) -> list[Any]:
    watchers: Mapping[object, Mapping[object, object]] = world.replicas.manager.fetch_purgatory.watchers
    return [operation for of_key in watchers.values() for operation in of_key.values()]


TestSessionsAgainstFullReads = SessionsAgainstFullReads.TestCase
TestSessionsAgainstFullReads.settings = settings(max_examples=25, stateful_step_count=40)


def test_a_wait_leaves_out_a_partition_that_the_response_refuses() -> None:
    """It is not in the metadata any more, and its log has new records: the response names it once, after the wait."""
    state = SessionsAgainstFullReads()
    try:
        state.fetch(who=0, named=set(), forgotten=set(), max_wait_ms=0, min_bytes=1, max_bytes=1 << 20)
        state.vanish_from_the_metadata(index=0)
        state.append_in_transaction(index=0)
        state.append_in_transaction(index=0)
        state.fetch(who=0, named=set(), forgotten=set(), max_wait_ms=500, min_bytes=1, max_bytes=1 << 20)
    finally:
        state.teardown()

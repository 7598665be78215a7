"""A broker whose disks fail: the errors that clients get, the notice to the controller, and when it stops."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from odradek.broker.machine.ticker import Ticker
from odradek.controller.tree.metadata_tree import ConnectionLoss
from odradek.controller.tree.tree_store import TreeStore
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import ProduceResponse
from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.disk.log_dir import LogDir
from odradek.storage.log.unified_log import UnifiedLog
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker
from tests.support.wire.requests import batch, build

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR
TOPIC = "t"


def dirs_of(path: Path, count: int = 3) -> dict[str, str]:
    """The metadata is in a directory of its own, so that every log directory may fail."""
    names = ",".join(str(path / f"logs-{number}") for number in range(count))
    return {"log.dirs": names, "metadata.dir": str(path / "metadata")}


def produce(broker: InProcessBroker, partitions: int, topic: str = TOPIC) -> list[int]:
    """The errors, by partition."""
    data = [{"index": index, "records": batch(b"a")} for index in range(partitions)]
    request = build(ApiKey.PRODUCE, acks=-1, topic_data=[{"name": topic, "partition_data": data}])
    response = broker.call(request, 11)
    assert isinstance(response, ProduceResponse)
    return [answer.error_code for answer in response.responses[0].partition_responses]


def log_of(broker: InProcessBroker, partition: int) -> UnifiedLog:
    (found,) = [log for log in broker.services.log_manager.all_logs() if log.topic_partition == (TOPIC, partition)]
    return found


def fail_dir_of(broker: InProcessBroker, partition: int) -> LogDir:
    log_dir = log_of(broker, partition).log_dir
    log_dir.fail("test", OSError(5, "Input/output error"))
    return log_dir


def wait_for_leader(broker: InProcessBroker, partition: int, leader: int) -> None:
    def leads() -> bool:
        state = broker.services.metadata_cache.partition_state(TOPIC, partition)
        return state is not None and state.leader == leader

    assert broker.settle(leads)


def errors_of(broker: InProcessBroker, partition: int) -> dict[str, int]:
    """The error code of the partition, by request."""
    fetch = build(
        ApiKey.FETCH,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[{"topic": TOPIC, "partitions": [{"partition": partition, "partition_max_bytes": 1 << 20}]}],
    )
    at = {"partition_index": partition, "timestamp": -1}
    offsets = build(ApiKey.LIST_OFFSETS, topics=[{"name": TOPIC, "partitions": [at]}])
    cut = {"partition_index": partition, "offset": 0}
    delete = build(ApiKey.DELETE_RECORDS, timeout_ms=10, topics=[{"name": TOPIC, "partitions": [cut]}])
    epoch = {"partition": partition, "leader_epoch": 0}
    epochs = build(ApiKey.OFFSET_FOR_LEADER_EPOCH, topics=[{"topic": TOPIC, "partitions": [epoch]}])
    return {
        "fetch": broker.call(fetch, 11).responses[0].partitions[0].error_code,  # type: ignore[attr-defined]
        "offsets": broker.call(offsets, 7).topics[0].partitions[0].error_code,  # type: ignore[attr-defined]
        "delete": broker.call(delete, 2).topics[0].partitions[0].error_code,  # type: ignore[attr-defined]
        "epochs": broker.call(epochs, 4).topics[0].partitions[0].error_code,  # type: ignore[attr-defined]
    }


@pytest.mark.parametrize("count", [2, 3])
def test_one_directory_fails_and_the_others_serve(tmp_path: Path, count: int) -> None:
    with in_process_broker(tmp_path, dirs_of(tmp_path, count)) as broker:
        broker.create_topic(TOPIC, count)
        assert produce(broker, count) == [0] * count
        lost = fail_dir_of(broker, 0)
        assert produce(broker, count) == [STORAGE_ERROR] + [0] * (count - 1)
        assert errors_of(broker, 0) == dict.fromkeys(("fetch", "offsets", "delete", "epochs"), STORAGE_ERROR)
        assert set(errors_of(broker, 1).values()) == {0}
        described = broker.call(build(ApiKey.DESCRIBE_LOG_DIRS, topics=None), 4).results  # type: ignore[attr-defined]
        assert {each.log_dir: each.error_code for each in described if each.error_code} == {lost.path: STORAGE_ERROR}
        # The controller has asked for the state of the replicas and found no other leader.
        wait_for_leader(broker, 0, -1)
        state = broker.services.metadata_cache.partition_state(TOPIC, 0)
        assert state is not None
        assert list(state.offline_replicas) == [broker.services.broker_id]
        wait_for_leader(broker, 1, broker.services.broker_id)


def test_start_with_a_directory_that_is_gone_and_again_when_it_is_back(tmp_path: Path) -> None:
    settings = dirs_of(tmp_path)
    with in_process_broker(tmp_path, settings) as broker:
        broker.create_topic(TOPIC, 3)
        assert produce(broker, 3) == [0, 0, 0]
        home = Path(log_of(broker, 1).log_dir.path)
    shutil.move(home, tmp_path / "unplugged")
    home.touch()  # what cannot be a directory
    for new in ("first", "second"):
        with in_process_broker(tmp_path, settings) as broker:
            wait_for_leader(broker, 0, broker.services.broker_id)
            wait_for_leader(broker, 1, -1)
            assert produce(broker, 3) == [0, STORAGE_ERROR, 0]
            assert not list(tmp_path.glob("logs-*/t-1")), "it is not made anew elsewhere"
            broker.create_topic(new, 3)
            assert produce(broker, 3, new) == [0, 0, 0]
    home.unlink()
    shutil.move(tmp_path / "unplugged", home)
    with in_process_broker(tmp_path, settings) as broker:
        wait_for_leader(broker, 1, broker.services.broker_id)
        assert log_of(broker, 1).log_end_offset == 1
        assert produce(broker, 3) == [0, 0, 0]


def test_broker_stops_when_the_last_directory_fails(tmp_path: Path) -> None:
    broker = InProcessBroker(tmp_path, dirs_of(tmp_path, 2))
    broker.create_topic(TOPIC, 2)
    fail_dir_of(broker, 0)
    assert not broker.server.failed.done()
    fail_dir_of(broker, 1)
    assert isinstance(broker.server.failed.exception(), OSError)
    broker.stop()
    assert not list(tmp_path.glob("*/.kafka_cleanshutdown"))


class FlushFails(OsFileSystem):
    """The next fsync of a file below `path`, once that is set, waits for `may_end` and fails. Later ones succeed, as
    those of the kernel do.
    """

    def __init__(self) -> None:
        self.path: Path | None = None
        self.may_end = threading.Event()

    def sync(self, fd: int) -> None:
        if self.path is not None and Path(f"/proc/self/fd/{fd}").readlink().is_relative_to(self.path):
            self.path = None
            self.may_end.wait(10)
            raise OSError(5, "Input/output error")
        super().sync(fd)


def test_a_stop_sees_the_error_of_a_flush_that_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = FlushFails()
    broker = InProcessBroker(tmp_path, dirs_of(tmp_path, 2), fs=fs)
    broker.create_topic(TOPIC, 2)
    assert produce(broker, 2) == [0, 0]
    failed, fine = (Path(log_of(broker, partition).log_dir.path) for partition in range(2))
    stop = Ticker.stop

    def stop_and_end_the_flush(ticker: Ticker) -> None:
        """The last step before the logs are closed."""
        stop(ticker)
        fs.may_end.set()

    monkeypatch.setattr(Ticker, "stop", stop_and_end_the_flush)
    fs.path = failed
    log_of(broker, 0).flush()
    broker.stop()
    assert fs.path is None
    assert not (failed / ".kafka_cleanshutdown").exists()
    assert (fine / ".kafka_cleanshutdown").exists()


def test_broker_stops_when_its_metadata_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = InProcessBroker(tmp_path, dirs_of(tmp_path, 1))
    broker.create_topic(TOPIC)

    def fail(_: TreeStore) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(TreeStore, "begin", fail)
    with pytest.raises(ConnectionLoss):
        broker.run(broker.services.controller.client.topics())
    assert broker.settle(broker.server.failed.done)
    assert str(broker.server.failed.exception()) == "disk I/O error"
    broker.stop()
    assert (tmp_path / "logs-0" / ".kafka_cleanshutdown").exists(), "the logs are fine"


def test_directory_whose_identity_cannot_be_read_is_offline(tmp_path: Path) -> None:
    settings = dirs_of(tmp_path, 2)
    with in_process_broker(tmp_path, settings):
        pass
    (tmp_path / "logs-0" / "meta.properties").unlink()
    (tmp_path / "logs-0" / "meta.properties").mkdir()
    with in_process_broker(tmp_path, settings) as broker:
        assert [log_dir.is_online for log_dir in broker.services.log_manager.log_dirs] == [False, True]
        broker.create_topic(TOPIC, 2)
        assert produce(broker, 2) == [0, 0]


def test_full_directory_refuses_records_alone(tmp_path: Path) -> None:
    with in_process_broker(tmp_path, dirs_of(tmp_path, 1)) as broker:
        broker.create_topic(TOPIC)
        assert produce(broker, 1) == [0]
        space = log_of(broker, 0).log_dir.space
        space.ran_out(OSError(28, "No space left on device"))
        assert produce(broker, 1) == [STORAGE_ERROR]
        assert set(errors_of(broker, 0).values()) == {0}
        broker.create_topic("other")
        assert space.is_full
        broker.advance(1_000)
        assert produce(broker, 1) == [0]

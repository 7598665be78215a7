from __future__ import annotations

import pytest

from odradek.broker.tools.data.consume import main
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.messages.leave_group import LeaveGroupRequest
from odradek.protocol.messages.metadata import MetadataResponseTopic
from odradek.protocol.messages.offset_commit import OffsetCommitRequest
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from tests.unit.broker.tools.data.commands import Commands
from tests.unit.broker.tools.data.consumer.test_group_member import Coordinator

A = TopicPartition("t", 0)


@pytest.fixture
def filled(run: Commands) -> Commands:
    run.cluster.append(A, *[SimpleRecord(10 * number, b"k%d" % number, b"v%d" % number) for number in range(4)])
    run.cluster.append(A, SimpleRecord(50, None, None, (("h", b"x"),)))
    return run


def test_to_the_end(filled: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    assert filled(main, "t", "-o", "beginning", "-e") == (0, b"v0\nv1\nv2\nv3\n\n")
    assert capsys.readouterr().err == "Processed a total of 5 messages\n"
    assert filled(main, "t", "-e", "-q") == (0, b"")
    assert capsys.readouterr().err == ""


def test_nothing_is_waited_for_at_the_end(filled: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.broker.tools.data.consume.POLL_MS", 3_600_000)
    assert filled(main, "t", "-o", "-1", "-e")[0] == 0


def test_a_number_of_records(filled: Commands) -> None:
    assert filled(main, "--topic", "t", "--from-beginning", "--max-messages", "2") == (0, b"v0\nv1\n")
    assert filled(main, "t", "-o", "-2", "-c", "1", "-f", "%o %k") == (0, b"3 k3")


def test_minus_one_is_no_limit(filled: Commands) -> None:
    arguments = ("t", "-o", "beginning", "-e", "--max-messages", "-1", "--timeout-ms", "-1")
    assert filled(main, *arguments) == (0, b"v0\nv1\nv2\nv3\n\n")


def test_between_two_times(filled: Commands) -> None:
    assert filled(main, "t", "-o", "s@10", "-o", "e@30") == (0, b"v1\nv2\n")


def test_without_records_for_some_time(filled: Commands) -> None:
    filled.cluster.on(FetchRequest, lambda broker_id, request: filled.cluster.fetch(broker_id, request))
    assert filled(main, "t", "--timeout-ms", "5") == (0, b"")


def test_the_join_of_a_group_is_no_longer_than_the_time_without_records(
    filled: Commands, capsys: pytest.CaptureFixture[str]
) -> None:
    coordinator = Coordinator(filled.cluster)
    coordinator.join_errors = [ErrorCode.MEMBER_ID_REQUIRED, *[ErrorCode.REBALANCE_IN_PROGRESS] * 100_000]
    assert filled(main, "t", "-G", "g", "--timeout-ms", "300") == (0, b"")
    assert capsys.readouterr().err == "Processed a total of 0 messages\n"
    assert filled.cluster.requests(LeaveGroupRequest)


def test_a_topic_is_not_waited_for_longer_than_that(filled: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.broker.tools.data.consumer.consumer.TOPIC_TIMEOUT_MS", 3_600_000)
    described = filled.cluster._described

    def without_leader(name: str) -> MetadataResponseTopic:
        found = described(name)
        found.error_code, found.partitions = ErrorCode.LEADER_NOT_AVAILABLE, []
        return found

    monkeypatch.setattr(filled.cluster, "_described", without_leader)
    assert filled(main, "t", "--timeout-ms", "300") == (0, b"")


def test_as_a_member_of_a_group(filled: Commands) -> None:
    Coordinator(filled.cluster).committed = {0: 2}
    assert filled(main, "t", "-G", "g", "-c", "1") == (0, b"v2\n")
    (commit,) = filled.cluster.requests(OffsetCommitRequest)
    assert commit.topics[0].partitions[0].committed_offset == 3, "what was printed, and no more"


def test_a_record_that_cannot_be_printed(filled: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("t", "-o", "beginning", "-e", "-q", "--value-deserializer", "LongDeserializer")
    assert filled(main, *arguments)[0] == 1
    assert "t-0, offset 0: Size of data received by LongDeserializer is not 8" in capsys.readouterr().err
    assert filled(main, *arguments, "--skip-message-on-error") == (0, b"")
    assert capsys.readouterr().err.count("is skipped") == 5


def test_records_before_one_that_cannot_be_printed(run: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    run.cluster.append(A, *[SimpleRecord(1, None, value) for value in (bytes(8), b"bad", bytes(8))])
    assert run(main, "t", "-o", "beginning", "-e", "--value-deserializer", "LongDeserializer") == (1, b"0\n")
    assert capsys.readouterr().err.startswith("Processed a total of 2 messages\n")


def test_what_decompresses_to_too_much(run: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    run.cluster.append(A, SimpleRecord(1, None, bytes(1_000)), compression_type=1)
    assert run(main, "t", "-o", "0", "-e", "-q", "--max-decompressed-bytes", "1000")[0] == 1
    assert "the records from offset 0 on cannot be read: gzip: more than 1000 bytes" in capsys.readouterr().err
    assert run(main, "t", "-o", "0", "-e", "-q", "--max-decompressed-bytes", "1100") == (0, bytes(1_000) + b"\n")


def test_a_topic_that_is_not_there(run: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, "t", "-p", "3", "-q")[0] == 1
    assert capsys.readouterr().err == "odradek: topic t has 1 partition(s), not 3\n"

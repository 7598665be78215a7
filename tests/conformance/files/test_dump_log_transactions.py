"""The logs of both coordinators after many transactions, as kafka-dump-log and `odradek dump-log` print them."""

from __future__ import annotations

import re
from collections.abc import Callable

import confluent_kafka
import pytest

from tests.support.broker import Broker
from tests.support.loads.transactional_clients import ConfluentProducer, ConfluentTransactions
from tests.support.processes.apache.dump_logs import compare, files_argument, we_print
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transactional.id.expiration.ms": "2000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
}
TIMEOUT_MS = 1000
DELETED = ""
STATE = re.compile(r"key: transaction_metadata::transactionalId=(\S+) payload: (?:.*?Epoch:(\d+),state=(\w+)|<DELETE>)")


def begin(producer: ConfluentProducer, group: object, offset: int) -> None:
    """A transaction of one record and one committed offset."""
    producer.begin()
    producer.send("t", "a")
    producer.send_offsets([confluent_kafka.TopicPartition("t", 0, offset)], group)


def states(printed: str, transactional_id: str) -> list[tuple[str, str]]:
    """The producer epochs and states an id was written with, one after the other."""
    return [(epoch, state) for name, epoch, state in STATE.findall(printed) if name == transactional_id]


def test_logs_of_the_coordinators(new_broker: Callable[..., Broker]) -> None:
    """Every state that is written, tombstones of expired ids; offsets committed, aborted and pending."""
    broker = new_broker(**SETTINGS)
    reader = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "readers"})
    group = reader.consumer_group_metadata()
    clients = ConfluentTransactions()
    finished = clients.producer(broker.bootstrap, "finished")
    begin(finished, group, 11)
    finished.commit()
    begin(finished, group, 22)
    finished.abort()
    timed_out = clients.producer(broker.bootstrap, "timed-out", TIMEOUT_MS)
    timed_out.begin()
    timed_out.send("t", "b")
    unfinished = clients.producer(broker.bootstrap, "unfinished")
    begin(unfinished, group, 33)
    reader.close()
    logs = [
        next((broker.log_dir / f"{topic}-0").glob("*.log")) for topic in ("__transaction_state", "__consumer_offsets")
    ]
    transactions, offsets = (
        [decoder, *files_argument([log])]
        for decoder, log in zip(("--transaction-log-decoder", "--offsets-decoder"), logs, strict=True)
    )
    eventually(lambda: we_print(transactions).stdout.count("<DELETE>"), accept=lambda expired: expired == 2)
    broker.kill()

    runs = [transactions, offsets]
    printed = compare([*runs, *(["--skip-record-metadata", *run] for run in runs)])
    assert [run.status for run in printed] == [0] * 4
    expired = (DELETED, DELETED)
    begun = [("0", "Ongoing"), ("0", "Ongoing")]
    committed, aborted = [[("0", f"{step}{end}") for step in ("Prepare", "Complete")] for end in ("Commit", "Abort")]
    assert states(printed[0].stdout, "finished") == [("0", "Empty"), *begun, *committed, *begun, *aborted, expired]
    raised = [("1", "PrepareAbort"), ("1", "CompleteAbort")]
    assert states(printed[0].stdout, "timed-out") == [("0", "Empty"), ("0", "Ongoing"), *raised, expired]
    assert states(printed[0].stdout, "unfinished") == [("0", "Empty"), *begun]
    assert re.findall(r'"offset":(\d+),', printed[1].stdout) == ["11", "22", "33"]
    assert re.findall(r"endTxnMarker: (\w+) coordinatorEpoch: 0", printed[1].stdout) == ["COMMIT", "ABORT"]
    assert printed[1].stdout.count("isTransactional: true isControl: false") == 3

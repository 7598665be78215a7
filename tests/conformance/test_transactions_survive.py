"""Transactions over the end of the broker: open ones go on, decided ones are finished, and the books balance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.api import ApiKey
from tests.support.admin import Admin
from tests.support.bank_run import survive
from tests.support.broker import Broker
from tests.support.raw_client import RawClient
from tests.support.requests import build
from tests.support.transactional_clients import ConfluentTransactions
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle

NewBroker = Callable[..., Broker]


def described(broker: Broker, transactional_id: str) -> Any:
    with RawClient(broker.host, broker.port) as client:
        answer: Any = client.call(build(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=[transactional_id]), 0)
    return answer.transaction_states[0]


@pytest.mark.parametrize(("ending", "committed"), [("stop", False), ("kill", True)])
def test_an_open_transaction_goes_on(new_broker: NewBroker, ending: str, committed: bool) -> None:
    broker = new_broker()
    topic = Admin(broker.bootstrap).create_topic("open", 1, {"segment.bytes": "1000"})
    client = ConfluentTransactions()
    producer = client.producer(broker.bootstrap, "id", 60_000)
    producer.begin()
    producer.send(topic, "before")
    getattr(broker, ending)()
    broker.start()
    assert client.read(broker.bootstrap, topic, "read_committed") == []
    eventually(lambda: described(broker, "id"), accept=lambda state: state.transaction_state == "Ongoing")
    producer.send(topic, "after")
    if committed:
        producer.commit()
    else:
        producer.abort()
    eventually(lambda: described(broker, "id"), accept=lambda state: state.transaction_state.startswith("Complete"))
    getattr(broker, ending)()
    broker.start()
    wanted = [(0, "before"), (1, "after")]
    assert client.read(broker.bootstrap, topic, "read_committed") == (wanted if committed else [])
    assert client.read(broker.bootstrap, topic, "read_uncommitted") == wanted
    producer.close()


def test_the_books_balance_under_kills_and_a_bad_network(
    make_broker: Callable[[Path, dict[str, str]], Broker], tmp_path: Path
) -> None:
    """Tellers whose transactions were cut off start anew; what was left open times out, and readers go on."""
    survive(lambda settings: make_broker(tmp_path, settings), tellers=3, transfers=60, kills=3, seed=5)

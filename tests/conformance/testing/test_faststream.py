"""Applications of FastStream against a broker of the kit, with both of the Kafka clients that it can use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from faststream.confluent import KafkaBroker as ConfluentBroker
from faststream.kafka import KafkaBroker as AiokafkaBroker

from odradek.testing import Broker

LIMIT_S = 20


@pytest.mark.parametrize("make_broker", [ConfluentBroker, AiokafkaBroker], ids=["confluent-kafka", "aiokafka"])
def test_what_a_subscriber_returns_is_published(make_broker: Callable[[str], Any]) -> None:
    with Broker() as broker:
        asyncio.run(run_application(make_broker(broker.bootstrap_servers), broker))
        (answer,) = broker.topic("invoices").wait_for(1)
        assert answer.json() == {"order": 7, "total": 10}
        assert broker.group("billing").wait_for_state("Empty").offsets["orders", 0].lag == 0


async def run_application(application: Any, broker: Broker) -> None:
    """Publish an order, and stop when its subscriber has answered with an invoice."""

    @application.subscriber("orders", group_id="billing", auto_offset_reset="earliest")
    @application.publisher("invoices")
    async def bill(order: dict[str, int]) -> dict[str, int]:
        return {"order": order["id"], "total": 2 * order["price"]}

    async with application:
        await application.start()
        await application.publish({"id": 7, "price": 5}, "orders")
        await asyncio.to_thread(broker.topic("invoices").wait_for, 1, timeout=LIMIT_S)

"""InitProducerId without a transaction: any broker gives out an id."""

from __future__ import annotations

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.wire.requests import build


def init(
    broker: InProcessBroker, version: int, transactional_id: str | None = None, **producer: int
) -> tuple[int, int, int]:
    request = build(
        ApiKey.INIT_PRODUCER_ID, transactional_id=transactional_id, transaction_timeout_ms=2**31 - 1, **producer
    )
    response = broker.call(request, version)
    return response.error_code, response.producer_id, response.producer_epoch  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", range(6))
def test_ids_are_fresh(broker: InProcessBroker, version: int) -> None:
    first, second = init(broker, version), init(broker, version)
    assert (first[0], first[2], second[0], second[2]) == (0, 0, 0, 0)
    assert second[1] == first[1] + 1


def test_empty_transactional_id(broker: InProcessBroker) -> None:
    assert init(broker, 5, "") == (ErrorCode.INVALID_REQUEST, -1, -1)


@pytest.mark.parametrize("producer", [{"producer_id": 5}, {"producer_epoch": 5}])
def test_half_a_producer(broker: InProcessBroker, producer: dict[str, int]) -> None:
    assert init(broker, 5, **producer) == (ErrorCode.INVALID_REQUEST, -1, -1)

"""Every served API at every version: whatever is asked, an answer comes that can be encoded and read again, and
nothing is a bug.
"""

from __future__ import annotations

import random

import pytest

from odradek.broker.apis import HANDLERS
from odradek.protocol.api import API, ApiKey
from tests.support.in_process_broker import InProcessBroker
from tests.support.messages import random_struct

SERVED = [(key, version) for key in HANDLERS for version in range(API[key].min_version, API[key].max_version + 1)]


def names(item: object) -> str:
    return item.name if isinstance(item, ApiKey) else str(item)


@pytest.mark.parametrize(("key", "version"), SERVED, ids=names)
def test_empty_request_is_answered(broker: InProcessBroker, key: ApiKey, version: int) -> None:
    waiting = broker.send(API[key].request_type()(), version)
    broker.settle(lambda: waiting.is_over)
    assert waiting.is_over


@pytest.mark.parametrize(("key", "version"), SERVED, ids=names)
def test_random_requests_are_answered(broker: InProcessBroker, key: ApiKey, version: int) -> None:
    rng = random.Random(f"{key.name} {version}")
    for _ in range(5):
        request = random_struct(API[key].request_type(), version, rng)
        waiting = broker.send(request, version)
        broker.settle(lambda: waiting.is_over)
        assert waiting.is_over, request

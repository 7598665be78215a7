from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from odradek.testing.errors import BrokerStopped
from tests.support.in_process.observed_broker import ObservedBroker, observed_broker
from tests.support.in_process.observed_groups import (
    ASSIGNMENT,
    SUBSCRIPTION,
    have_coordinator,
    join_fields,
    joined,
)
from tests.support.wire.requests import build


def test_a_group_with_a_member(observed: ObservedBroker) -> None:
    member_id = joined(observed)
    group = observed.group("g").describe()
    assert (group.state, group.generation, group.protocol_type, group.protocol) == ("Stable", 1, "consumer", "range")
    assert group.leader == member_id
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "app", "10.0.0.7")
    assert (member.topics, member.assignment) == (("t",), {"t": (0,)})
    assert (member.encoded_metadata, member.encoded_assignment) == (SUBSCRIPTION, ASSIGNMENT)
    assert observed.groups() == ["g"]
    properties = observed.group("g")
    assert (properties.state, properties.generation, properties.protocol) == ("Stable", 1, "range")
    assert (properties.members, properties.offsets, properties.lag) == ((member,), {}, 0)


def test_a_rebalance_that_goes_on_has_no_generation(tmp_path: Path) -> None:
    with observed_broker(tmp_path, group_initial_rebalance_delay_ms="3000") as observed:
        have_coordinator(observed)
        observed.inner.send(build(ApiKey.JOIN_GROUP, **join_fields()), 2)
        (rebalance,) = observed.group("g").history
        assert (rebalance.generation, rebalance.ended_ms) == (None, None)
        assert observed.group("g").state == "PreparingRebalance"


def test_a_group_that_does_not_exist(observed: ObservedBroker) -> None:
    group = observed.group("g").describe()
    assert (group.state, group.members, group.offsets, group.history) == ("Dead", (), {}, ())


def test_a_broker_that_stops_ends_a_wait_for_a_group(observed: ObservedBroker) -> None:
    observed.meanwhile(lambda: observed.observations.close("stopped"))
    with pytest.raises(BrokerStopped, match="stopped"):
        observed.group("g").wait_for(lambda group: False)

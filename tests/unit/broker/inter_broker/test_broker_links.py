from __future__ import annotations

import pytest

from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from tests.support.in_process.links import OWN_ID, FakeLinks


def test_a_broker_has_one_link_where_the_metadata_says_it_listens() -> None:
    links = FakeLinks()
    links.know(2, {2: 9002, 3: 9003})
    ours = links.broker_links("sender")
    assert ours.link(2) is ours.link(2)
    assert ours.link(3) is not ours.link(2)
    assert [(link.end_point, link.client_id) for link in links.made] == [
        (EndPoint("host2", 9002, "PLAINTEXT", SecurityProtocol.PLAINTEXT), "sender"),
        (EndPoint("host3", 9003, "PLAINTEXT", SecurityProtocol.PLAINTEXT), "sender"),
    ]


def test_a_broker_that_moved_gets_a_new_link() -> None:
    links = FakeLinks()
    links.know(2, {2: 9002})
    ours = links.broker_links()
    ours.link(2)
    links.know(2, {2: 9102})
    ours.link(2)
    assert [(link.end_point.port, link.is_closed) for link in links.made] == [(9002, True), (9102, False)]


def test_a_broker_that_is_gone_or_has_no_such_listener_has_no_link() -> None:
    links = FakeLinks()
    ours = links.broker_links()
    links.know(2, {2: 9002})
    ours.link(2)
    links.know(2, {2: 9002}, listener="EXTERNAL")
    with pytest.raises(ConnectionRefusedError, match="broker 2 is not alive or has no listener PLAINTEXT"):
        ours.link(2)
    assert links.made[0].is_closed
    links.know(2, {})
    with pytest.raises(ConnectionRefusedError):
        ours.link(2)


def test_this_broker_is_reached_in_process_whatever_the_metadata_says() -> None:
    links = FakeLinks()
    assert links.broker_links().link(OWN_ID) is links.own_link
    assert not links.made


def test_after_hanging_up_the_next_link_is_a_new_one() -> None:
    links = FakeLinks()
    links.know(2, {2: 9002, 3: 9003})
    ours = links.broker_links()
    ours.link(2)
    ours.close_link(2)
    ours.close_link(2)
    ours.link(2)
    ours.link(3)
    ours.close()
    assert [link.is_closed for link in links.made] == [True, True, True]

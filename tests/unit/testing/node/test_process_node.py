from __future__ import annotations

import os
import pickle

import pytest

from odradek.broker.machine.startup_error import StartupError
from odradek.controller.tree.metadata_tree import NoNode
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.testing.assertions import group_questions, record_questions  # noqa: F401 - register their questions
from odradek.testing.node.ports import BrokerStopped
from odradek.testing.node.process_node import ProcessNode
from odradek.testing.node.questions import lifecycle  # noqa: F401 - registers its questions
from odradek.testing.node.settings import broker_settings
from tests.support.testing import asking  # noqa: F401 - registers the questions


def test_it_answers_from_another_process_and_errors_travel() -> None:
    node = ProcessNode(broker_settings({}, {}))
    assert "PLAINTEXT" in node.start().result(30).addresses
    waiting = node.submit("never_answered", {})
    process_id = node.submit("process_id", {}).result(10)
    assert process_id != os.getpid()
    with pytest.raises(NoNode, match="not there"):
        node.submit("fail_in_broker", {"text": "not there"}).result(10)
    with pytest.raises(pickle.PicklingError, match="RunningBroker"):
        node.submit("give_what_cannot_be_pickled", {}).result(10)
    with pytest.raises(KeyError):
        node.submit("unknown", {})
    directory = node.submit("log_directory", {}).result(10)
    node.stop().result(10)
    assert isinstance(directory, str)
    assert not os.path.exists(os.path.dirname(directory))
    for future in (waiting, node.submit("process_id", {})):
        with pytest.raises(BrokerStopped):
            future.result(10)


def test_a_refused_start_raises_the_line_for_operators() -> None:
    node = ProcessNode(broker_settings({}, {"num_partitions": 0}))
    with pytest.raises(StartupError, match=r"num\.partitions"):
        node.start().result(30)
    node.stop().result(10)


def test_a_reset_ends_the_waits_of_the_broker() -> None:
    node = ProcessNode(broker_settings({}, {}))
    node.start().result(30)
    waiting = node.submit("group_view", {"group_id": "g", "after": 1_000, "wait_s": 30})
    node.submit("reset", {}).result(10)
    with pytest.raises(BrokerStopped, match="The broker was reset before it answered"):
        waiting.result(10)
    node.stop().result(10)


def test_a_question_that_nobody_waits_for_any_more_does_not_disturb_the_others() -> None:
    node = ProcessNode(broker_settings({}, {}))
    node.start().result(30)
    for wait_s in (0.3, 30):
        given_up = node.submit("group_view", {"group_id": "g", "after": 1_000, "wait_s": wait_s})
        assert given_up.cancel()
    node.submit("group_view", {"group_id": "g", "after": 1_000, "wait_s": 0.5}).result(10)
    assert node.submit("process_id", {}).result(10) != os.getpid()
    node.stop().result(10)


def test_errors_travel_whatever_their_constructors_are() -> None:
    node = ProcessNode(broker_settings({}, {}))
    node.start().result(30)
    with pytest.raises(KafkaError) as refused:
        node.submit("producers", {"topic": "t", "partition": 0}).result(10)
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(pickle.PicklingError, match="first text"):
        node.submit("raise_what_cannot_be_unpickled", {"text": "first text"}).result(10)
    assert node.submit("process_id", {}).result(10) != os.getpid()
    node.stop().result(10)

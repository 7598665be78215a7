from __future__ import annotations

import pytest

from odradek.controller.model import topic_names
from odradek.controller.model.topic_names import (
    NAME_LENGTH_MAX,
    TopicNames,
    has_collision_chars,
    is_internal,
    is_valid_topic_name,
    metric_name,
    validate_topic_name,
)
from odradek.protocol.errors import ErrorCode, KafkaError


@pytest.mark.parametrize("name", ["a", "a.b", "a_b", "A-9", "...", "x" * NAME_LENGTH_MAX])
def test_legal_names(name: str) -> None:
    validate_topic_name(name)
    assert is_valid_topic_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("a/b", "'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("ä", "'ä' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a\n", "'a\n' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_illegal_names(name: str, reason: str) -> None:
    with pytest.raises(KafkaError) as refusal:
        validate_topic_name(name)
    assert refusal.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refusal.value.message == f"Topic name is invalid: {reason}"
    assert not is_valid_topic_name(name)


def test_names_that_make_the_same_metric_collide() -> None:
    names = TopicNames()
    names.update({"a_b.c", "a.b.c", "ab", "a-b"})
    assert names.colliding("a.b_c") == ["a.b.c", "a_b.c"]
    assert names.colliding("a.b") == []
    names.update({"ab", "a.b.c", "x_"})
    assert names.colliding("a.b_c") == ["a.b.c"]
    assert names.colliding("x.") == ["x_"]
    assert has_collision_chars("a.b")
    assert has_collision_chars("a_b")
    assert not has_collision_chars("a-b")


def test_a_new_topic_is_not_compared_with_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = {f"t_{number}" for number in range(1000)}
    names = TopicNames()
    names.update(topics)
    made: list[str] = []
    monkeypatch.setattr(topic_names, "metric_name", lambda topic: made.append(topic) or metric_name(topic))
    names.update({*topics, "new_one"} - {"t_7"})
    assert names.colliding("t.8") == ["t_8"]
    assert sorted(made) == ["new_one", "t.8", "t_7"]


def test_internal_topics() -> None:
    assert is_internal("__consumer_offsets")
    assert is_internal("__transaction_state")
    assert is_internal("__share_group_state")
    assert not is_internal("__mine")

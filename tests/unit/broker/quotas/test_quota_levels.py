"""The eight levels of precedence, with the quotas of Kafka's ClientQuotaManagerTest.testQuotaConfigPrecedence."""

from __future__ import annotations

import pytest

from odradek.broker.quotas.quota_entity import client_quota_entity
from odradek.broker.quotas.quota_levels import QuotaLevels, sanitized_user

DEFAULT = "<default>"


def levels(*quotas: tuple[str | None, str | None, float]) -> QuotaLevels:
    found = QuotaLevels()
    for user, client_id, bound in quotas:
        found.update_quota(client_quota_entity(user, client_id), bound)
    return found


def limit(quotas: QuotaLevels, user: str, client_id: str) -> float | None:
    return quotas.limit(quotas.tags(f"User:{user}", client_id))


KAFKA_TEST = (
    (DEFAULT, None, 1000.0),
    (None, DEFAULT, 2000.0),
    (DEFAULT, DEFAULT, 3000.0),
    ("userA", None, 4000.0),
    ("userA", "client1", 5000.0),
    ("userB", None, 6000.0),
    ("userB", "client1", 7000.0),
    ("userB", DEFAULT, 8000.0),
    ("userC", None, 10000.0),
    (None, "client1", 9000.0),
)


@pytest.mark.parametrize(
    ("user", "client_id", "expected"),
    [
        ("userA", "client1", 5000.0),
        ("userA", "client2", 4000.0),
        ("userB", "client1", 7000.0),
        ("userB", "client2", 8000.0),
        ("userC", "client1", 10000.0),
        ("userD", "client1", 3000.0),
    ],
)
def test_the_most_specific_quota_decides(user: str, client_id: str, expected: float) -> None:
    assert limit(levels(*KAFKA_TEST), user, client_id) == expected


def test_a_removed_default_falls_back_to_the_next_level() -> None:
    quotas = levels(*KAFKA_TEST)
    quotas.update_quota(client_quota_entity(DEFAULT, DEFAULT), None)
    assert limit(quotas, "userD", "client1") == 1000
    assert quotas.tags("User:userD", "client1") == ("userD", ""), "shared by the clients of a user"
    quotas.update_quota(client_quota_entity(DEFAULT, None), None)
    assert limit(quotas, "userD", "client1") == 9000
    assert limit(quotas, "userD", "client2") == 2000
    assert quotas.tags("User:userD", "client2") == ("", "client2"), "shared by the users of a client id"


def test_every_level_hides_those_below_it() -> None:
    order: list[tuple[str | None, str | None]] = [
        ("u", "c"),
        ("u", DEFAULT),
        ("u", None),
        (DEFAULT, "c"),
        (DEFAULT, DEFAULT),
        (DEFAULT, None),
        (None, "c"),
        (None, DEFAULT),
    ]
    for first in range(len(order)):
        remaining = [(user, client_id, float(number)) for number, (user, client_id) in enumerate(order)][first:]
        assert limit(levels(*remaining), "u", "c") == first


def test_without_quotas_there_is_no_limit() -> None:
    quotas = QuotaLevels()
    assert quotas.tags("User:u", "c") == ("", "c")
    assert limit(quotas, "u", "c") is None


@pytest.mark.parametrize(
    ("user", "client_id", "expected"),
    [(None, "c", ("", "app")), ("u", None, ("alice", "")), ("u", "c", ("alice", "app"))],
)
def test_with_quotas_of_one_kind_the_tags_are_of_that_kind(
    user: str | None, client_id: str | None, expected: tuple[str, str]
) -> None:
    assert levels((user, client_id, 1.0)).tags("User:alice", "app") == expected


def test_a_removal_enables_its_kind_too() -> None:
    quotas = QuotaLevels()
    quotas.update_quota(client_quota_entity("u", None), None)
    assert quotas.tags("User:alice", "app") == ("alice", "")


def test_an_empty_client_id_has_no_quota_of_client_ids() -> None:
    assert limit(levels((None, DEFAULT, 1.0)), "u", "") is None


def test_users_are_sanitized_in_tags_and_found_by_their_names() -> None:
    quotas = levels(("a%40b", None, 5.0))
    assert quotas.tags("User:a@b", "c") == ("a%40b", "")
    assert limit(quotas, "a@b", "c") == 5
    assert sanitized_user("User:CN=a, O=b:c") == "CN%3Da%2C%20O%3Db%3Ac"

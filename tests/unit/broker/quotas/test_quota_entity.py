from __future__ import annotations

import pytest

from odradek.broker.quotas.quota_entity import ConfigEntity, ConfigEntityType, client_quota_entity

USER, CLIENT_ID = ConfigEntityType.USER, ConfigEntityType.CLIENT_ID


@pytest.mark.parametrize(
    ("user", "client_id", "text"),
    [
        ("alice", None, "user alice"),
        ("<default>", None, "default user"),
        (None, "app", "client-id app"),
        (None, "<default>", "default client-id"),
        ("alice", "<default>", "user alice default client-id"),
    ],
)
def test_names_in_the_log(user: str | None, client_id: str | None, text: str) -> None:
    assert str(client_quota_entity(user, client_id)) == text


def test_names_are_desanitized_and_a_name_like_the_default_is_another_entity() -> None:
    entity = client_quota_entity("a%40b", "%3Cdefault%3E")
    assert entity == (ConfigEntity(USER, "a@b"), ConfigEntity(CLIENT_ID, "<default>"))
    assert entity != client_quota_entity("a%40b", "<default>")

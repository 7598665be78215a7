"""The SCRAM credentials of users."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from odradek.controller.admin import scram_credentials
from odradek.controller.admin.scram_credentials import describe_scram_credentials
from odradek.controller.loop_turns import ITEMS_A_TURN
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.errors import ErrorCode
from tests.support.async_test import async_test
from tests.support.in_process import metadata_client
from tests.support.in_process.loop_turns import most_in_a_turn

CREDENTIAL = "salt=c2FsdA==,stored_key=aXRlcmF0aW9ucw==,server_key=eA==,iterations={}"
CONFIGS = {
    "b%40c": {"SCRAM-SHA-512": CREDENTIAL.format(8192), "SCRAM-SHA-256": CREDENTIAL.format(4096)},
    "a": {"SCRAM-SHA-256": CREDENTIAL.format(5000), "producer_byte_rate": "1"},
    "broken": {"SCRAM-SHA-256": "iterations"},
    "quota-only": {"producer_byte_rate": "1"},
    "<default>": {"producer_byte_rate": "1"},
}


def opened() -> AbstractAsyncContextManager[MetadataClient]:
    return metadata_client.opened({f"users/{user}": config for user, config in CONFIGS.items()})


async def described(client: MetadataClient, users: list[str] | None) -> list[scram_credentials.UserCredentials]:
    found = await describe_scram_credentials(client, users)
    return [scram_credentials.missing(one) if isinstance(one, str) else one for one in found]


@async_test
async def test_all_that_have_any_are_told_by_name() -> None:
    async with opened() as client:
        for nobody in (None, []):
            found = await described(client, nobody)
            assert [(one.user, one.iterations) for one in found] == [
                ("a", {1: 5000}),
                ("b@c", {1: 4096, 2: 8192}),
                ("broken", {}),
            ]
            assert found[2].error is not None
            assert found[2].error.code is ErrorCode.UNKNOWN_SERVER_ERROR


@async_test
async def test_a_name_that_two_nodes_have_is_told_twice() -> None:
    """Another program may write `+` for a space, where Kafka writes `%20`."""
    nodes = {"a+b": {"SCRAM-SHA-256": CREDENTIAL.format(4096)}, "a%20b": {"SCRAM-SHA-256": CREDENTIAL.format(5000)}}
    async with metadata_client.opened({f"users/{node}": config for node, config in nodes.items()}) as client:
        found = await described(client, None)
        assert sorted((one.user, one.iterations[1]) for one in found) == [("a b", 4096), ("a b", 5000)]


@async_test
async def test_many_users_are_told_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []
    credentials = scram_credentials._credentials

    def count(user: str, config: dict[str, str]) -> scram_credentials.UserCredentials:
        looked_at.append(user)
        return credentials(user, config)

    monkeypatch.setattr(scram_credentials, "_credentials", count)
    config = {"SCRAM-SHA-256": CREDENTIAL.format(4096)}
    async with metadata_client.opened({f"users/user{n}": config for n in range(5 * ITEMS_A_TURN)}) as client:
        most = await most_in_a_turn(describe_scram_credentials(client, None), lambda: len(looked_at))
    assert len(looked_at) == 5 * ITEMS_A_TURN
    assert most <= ITEMS_A_TURN


@async_test
async def test_users_that_are_asked_for_are_told_once_in_the_order_they_were_named() -> None:
    async with opened() as client:
        found = await described(client, ["b@c", "nobody", "a", "", "a", "quota-only"])
        assert [(one.user, one.iterations, one.error and one.error.code) for one in found] == [
            ("b@c", {1: 4096, 2: 8192}, None),
            ("nobody", {}, ErrorCode.RESOURCE_NOT_FOUND),
            ("a", {}, ErrorCode.DUPLICATE_RESOURCE),
            ("", {}, ErrorCode.RESOURCE_NOT_FOUND),
            ("quota-only", {}, ErrorCode.RESOURCE_NOT_FOUND),
        ]

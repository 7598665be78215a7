"""The SCRAM credentials of users."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from odradek.controller.admin import scram_credentials
from odradek.controller.admin.scram_credentials import describe_scram_credentials
from odradek.controller.loop_turns import ITEMS_A_TURN
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode, KafkaError
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
UNREADABLE = (ErrorCode.UNKNOWN_SERVER_ERROR, DEFAULT_MESSAGES[ErrorCode.UNKNOWN_SERVER_ERROR])


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
            assert isinstance(found[2].error, KafkaError)
            assert (found[2].error.code, found[2].error.message) == UNREADABLE


@async_test
async def test_a_node_with_a_value_that_is_no_string_is_told_as_an_error() -> None:
    async with opened() as client:
        await client.create_recursive("/config/users/junk", b'{"config":{"producer_byte_rate":1}}')
        for users in (None, ["junk"]):
            junk = next(one for one in await described(client, users) if one.user == "junk")
            assert junk.error is not None
            assert (junk.error.code, junk.error.message) == UNREADABLE


@async_test
async def test_a_name_that_two_nodes_have_is_told_once() -> None:
    """Another program may write `+` for a space, where Kafka writes `%20`."""
    nodes = {"a+b": {"SCRAM-SHA-256": CREDENTIAL.format(4096)}, "a%20b": {"SCRAM-SHA-256": CREDENTIAL.format(5000)}}
    async with metadata_client.opened({f"users/{node}": config for node, config in nodes.items()}) as client:
        found = await described(client, None)
        assert [one.user for one in found] == ["a b"]
        assert found[0].iterations[1] in (4096, 5000)


@async_test
async def test_a_user_whose_node_cannot_be_read_fails_alone() -> None:
    """`.` is no name of a node; the values of `bad` are no texts."""
    bad = {"/config/users/bad": b'{"version":1,"config":{"SCRAM-SHA-256":1}}'}
    configs = {"users/a": CONFIGS["a"], "users/broken": CONFIGS["broken"]}
    async with metadata_client.opened(configs, bad) as client:
        *refused, (user, iterations, error) = await described(client, [".", "..", "bad", "broken", "a"])
        assert [one.error and (one.error.code, one.error.message) for one in refused] == [UNREADABLE] * 4
        assert (user, iterations, error) == ("a", {1: 5000}, None)


@pytest.mark.parametrize("text", ["iterations=4096", CREDENTIAL.format("4_096"), CREDENTIAL.format(4096) + ",more=1"])
@async_test
async def test_a_credential_has_four_values(text: str) -> None:
    async with metadata_client.opened({"users/a": {"SCRAM-SHA-512": text}}) as client:
        (found,) = await described(client, ["a"])
        assert (found.iterations, found.error and found.error.code) == ({}, ErrorCode.UNKNOWN_SERVER_ERROR)


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

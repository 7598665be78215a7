"""Changes of SCRAM users; the answers in order are held against Apache Kafka's by a transcript."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from odradek.controller.admin.scram_credential_changes import Deletion, Upsertion, alter_scram_credentials
from odradek.controller.model.scram_credential import ScramCredential
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.errors import ErrorCode
from tests.support.async_test import async_test
from tests.support.in_process import metadata_client
from tests.support.in_process.metadata_client import CONTROLLER

KEY = b"k" * 32


def opened() -> AbstractAsyncContextManager[MetadataClient]:
    return metadata_client.opened({"users/a%40b": {"producer_byte_rate": "1"}}, {znodes.CONTROLLER: CONTROLLER})


def new(user: str, mechanism: int = 1, iterations: int = 4096, key: bytes = KEY) -> Upsertion:
    return Upsertion(user, mechanism, iterations, b"salt", key)


async def codes(
    client: MetadataClient, upsertions: list[Upsertion], deletions: list[Deletion]
) -> dict[str, ErrorCode | None]:
    results = await alter_scram_credentials(client, upsertions, deletions)
    return {user: None if error is None else error.code for user, error in results.items()}


@async_test
async def test_credentials_are_stored_beside_the_quotas_of_a_user_and_every_broker_is_told() -> None:
    async with opened() as client:
        assert await codes(client, [new("a@b"), new("a@b", 2, 16384)], []) == {"a@b": None}
        config = await client.entity_config("users/a%40b")
        assert set(config) == {"producer_byte_rate", "SCRAM-SHA-256", "SCRAM-SHA-512"}
        assert ScramCredential.of_text(config["SCRAM-SHA-512"]).iterations == 16384
        assert len(await client.children(znodes.CONFIG_CHANGES)) == 1
        assert await codes(client, [], [Deletion("a@b", 1), Deletion("a@b", 2)]) == {"a@b": None}
        assert await client.entity_config("users/a%40b") == {"producer_byte_rate": "1"}


@async_test
async def test_the_node_of_a_user_without_anything_else_goes_with_its_last_credential() -> None:
    async with opened() as client:
        await codes(client, [new("c")], [])
        assert "c" in await client.children("/config/users")
        assert await codes(client, [], [Deletion("c", 1)]) == {"c": None}
        assert "c" not in await client.children("/config/users")


@pytest.mark.parametrize(
    ("upsertion", "code", "message"),
    [
        (new(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (new("c", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (new("c", -1), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (new("c", 1, 4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (new("c", 1, 16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
    ],
)
def test_what_is_not_valid_is_refused(upsertion: Upsertion, code: ErrorCode, message: str) -> None:
    @async_test
    async def check() -> None:
        async with opened() as client:
            results = await alter_scram_credentials(client, [upsertion, new("other")], [])
            error = results[upsertion.user]
            assert error is not None
            assert (error.code, error.message) == (code, message)
            assert results["other"] is None
            assert not await client.entity_config("users/c")

    check()


@async_test
async def test_all_changes_of_a_user_are_made_or_none() -> None:
    async with opened() as client:
        assert await codes(client, [new("c"), new("c")], []) == {"c": ErrorCode.DUPLICATE_RESOURCE}
        assert await codes(client, [new("c")], [Deletion("c", 1)]) == {"c": ErrorCode.DUPLICATE_RESOURCE}
        assert await codes(client, [new("c")], [Deletion("c", 2)]) == {"c": ErrorCode.RESOURCE_NOT_FOUND}
        assert await codes(client, [new("c"), new("c", 9)], []) == {"c": ErrorCode.UNSUPPORTED_SASL_MECHANISM}
        assert not await client.entity_config("users/c")


@async_test
async def test_an_empty_key_fails_every_valid_user_of_the_request() -> None:
    async with opened() as client:
        results = await codes(client, [new("c", key=b""), new("d"), new("")], [])
        assert results == {
            "c": ErrorCode.UNKNOWN_SERVER_ERROR,
            "d": ErrorCode.UNKNOWN_SERVER_ERROR,
            "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        }
        assert not await client.entity_config("users/d")


def test_the_repr_has_no_secret() -> None:
    assert repr(new("c")) == "Upsertion('c', 1, 4096)"

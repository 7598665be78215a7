"""What AlterClientQuotas writes, deletes and refuses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

import pytest

from odradek.controller.admin.client_quota_changes import QuotaChange, alter_client_quotas
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.support.async_test import async_test
from tests.support.in_process import metadata_client
from tests.support.in_process.metadata_client import CONTROLLER


def opened() -> AbstractAsyncContextManager[MetadataClient]:
    return metadata_client.opened(nodes={znodes.CONTROLLER: CONTROLLER})


async def has_address(host: str) -> bool:
    return host in ("1.2.3.4", "host.example")


async def alter(
    client: MetadataClient,
    entity: Mapping[str, str | None],
    *changes: tuple[str, float | None],
    validate_only: bool = False,
) -> None:
    await alter_client_quotas(
        client,
        entity,
        [QuotaChange(*change) for change in changes],
        validate_only=validate_only,
        has_address=has_address,
    )


async def notified(client: MetadataClient) -> list[str]:
    names = await client.numbered_children(znodes.CONFIG_CHANGES)
    nodes = [await client.get(f"{znodes.CONFIG_CHANGES}/{name}") for name in names]
    return [znodes.decode_config_change(node.data) for node in nodes if node is not None]


@pytest.mark.parametrize(
    ("entity", "path"),
    [
        ({"user": "a@b"}, "users/a%40b"),
        ({"user": None}, "users/<default>"),
        ({"client-id": "app"}, "clients/app"),
        ({"client-id": None}, "clients/<default>"),
        ({"client-id": "<default>"}, "clients/%3Cdefault%3E"),
        ({"user": "a@b", "client-id": "my app"}, "users/a%40b/clients/my%20app"),
        ({"user": None, "client-id": None}, "users/<default>/clients/<default>"),
    ],
)
@async_test
async def test_entities_have_their_nodes(entity: dict[str, str | None], path: str) -> None:
    async with opened() as client:
        await alter(client, entity, ("producer_byte_rate", 1000.0), ("request_percentage", 12.5))
        assert await client.entity_config(path) == {"producer_byte_rate": "1000", "request_percentage": "12.5"}
        assert await notified(client) == [path]


@pytest.mark.parametrize(("ip", "path"), [("1.2.3.4", "ips/1.2.3.4"), (None, "ips/<default>")])
@async_test
async def test_addresses(ip: str | None, path: str) -> None:
    async with opened() as client:
        await alter(client, {"ip": ip}, ("connection_creation_rate", 5.0))
        assert await client.entity_config(path) == {"connection_creation_rate": "5"}


@pytest.mark.parametrize(
    ("entity", "change", "code", "message"),
    [
        ({}, ("producer_byte_rate", 1.0), 42, "Invalid empty client quota entity"),
        ({"planet": "x"}, ("producer_byte_rate", 1.0), 42, "Unhandled client quota entity type: planet"),
        ({"user": ""}, ("producer_byte_rate", 1.0), 42, "Empty user not supported"),
        ({"user": "u"}, ("no_such_quota", 1.0), 42, "Invalid configuration key no_such_quota"),
        ({"user": "u"}, ("connection_creation_rate", 1.0), 42, "Invalid configuration key connection_creation_rate"),
        ({"user": "u"}, ("producer_byte_rate", 5.5), 42, "Configuration producer_byte_rate must be a LONG value"),
        ({"user": "u"}, ("producer_byte_rate", -1.0), 42, "Configuration producer_byte_rate must be a LONG value"),
        ({"user": "u"}, ("producer_byte_rate", 1e300), 42, "Configuration producer_byte_rate must be a LONG value"),
        ({"ip": "1.2.3.4"}, ("connection_creation_rate", 2.0**31), 42, "must be a INT value"),
        ({"ip": "1.2.3.4", "user": "u"}, ("connection_creation_rate", 1.0), 42, "IP entity should not be used with"),
        ({"ip": "nowhere"}, ("connection_creation_rate", 1.0), 42, "nowhere is not a valid IP or resolvable host."),
        ({"user": "u"}, ("SCRAM-SHA-256", 1.0), -1, None),
    ],
)
@async_test
async def test_refusals(
    entity: dict[str, str | None], change: tuple[str, float], code: int, message: str | None
) -> None:
    async with opened() as client:
        with pytest.raises(KafkaError) as refused:
            await alter(client, entity, change)
        assert refused.value.code == code
        if message is None:
            assert refused.value.specific_message is None
        else:
            assert message in refused.value.message
        assert await notified(client) == []


@pytest.mark.parametrize(
    ("value", "text"), [(1000.0000001, "1000"), (0.0, "0"), (math.nan, "0"), (2.0**53, "9007199254740992")]
)
@async_test
async def test_whole_numbers_are_cut_off_as_in_java(value: float, text: str) -> None:
    async with opened() as client:
        await alter(client, {"user": "u"}, ("producer_byte_rate", value))
        assert await client.entity_config("users/u") == {"producer_byte_rate": text}


@async_test
async def test_an_unknown_key_in_the_node_refuses_every_change() -> None:
    async with opened() as client:
        await client.create_recursive("/config/clients/c", znodes.encode_entity_config({"old": "1"}))
        with pytest.raises(KafkaError) as refused:
            await alter(client, {"client-id": "c"}, ("producer_byte_rate", 1.0))
        assert refused.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


@async_test
async def test_validation_writes_nothing() -> None:
    async with opened() as client:
        await alter(client, {"user": "u"}, ("producer_byte_rate", 1.0), validate_only=True)
        assert await client.get("/config/users/u") is None
        assert await notified(client) == []


@async_test
async def test_a_removed_quota_leaves_the_others_and_credentials() -> None:
    async with opened() as client:
        await client.create_recursive("/config/users/u", znodes.encode_entity_config({"SCRAM-SHA-256": "x"}))
        await alter(client, {"user": "u"}, ("producer_byte_rate", 1.0))
        await alter(client, {"user": "u"}, ("producer_byte_rate", None), ("unknown keys may be removed", None))
        assert await client.entity_config("users/u") == {"SCRAM-SHA-256": "x"}


@async_test
async def test_an_empty_node_is_deleted_and_the_brokers_are_notified() -> None:
    async with opened() as client:
        await alter(client, {"client-id": "c"}, ("producer_byte_rate", 1.0))
        await alter(client, {"client-id": "c"}, ("producer_byte_rate", None))
        assert await client.get("/config/clients/c") is None
        assert await notified(client) == ["clients/c", "clients/c"]


@async_test
async def test_of_a_user_with_a_client_id_the_empty_parents_go_too() -> None:
    async with opened() as client:
        both: dict[str, str | None] = {"user": "u", "client-id": "c"}
        await alter(client, both, ("producer_byte_rate", 1.0))
        await alter(client, both, ("producer_byte_rate", None))
        assert await client.children("/config/users") == ()


@async_test
async def test_parents_with_something_else_stay() -> None:
    async with opened() as client:
        both: dict[str, str | None] = {"user": "u", "client-id": "c"}
        await alter(client, both, ("producer_byte_rate", 1.0))
        await alter(client, {"user": "u", "client-id": "d"}, ("producer_byte_rate", 1.0))
        await alter(client, {"user": "u"}, ("producer_byte_rate", 1.0))
        await alter(client, both, ("producer_byte_rate", None))
        assert await client.children("/config/users/u/clients") == ("d",)
        await alter(client, {"user": "u", "client-id": "d"}, ("producer_byte_rate", None))
        assert await client.children("/config/users/u") == ()
        assert await client.entity_config("users/u") == {"producer_byte_rate": "1"}


@async_test
async def test_a_user_with_clients_below_keeps_its_node() -> None:
    async with opened() as client:
        await alter(client, {"user": "u", "client-id": "c"}, ("producer_byte_rate", 1.0))
        await alter(client, {"user": "u"}, ("producer_byte_rate", 1.0))
        await alter(client, {"user": "u"}, ("producer_byte_rate", None))
        assert await client.entity_config("users/u") == {}
        assert await client.children("/config/users/u") == ("clients",)

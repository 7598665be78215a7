"""The quotas that a filter finds in the metadata."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from odradek.controller.admin.client_quotas import (
    CLIENT_ID,
    IP,
    USER,
    FilterComponent,
    MatchType,
    describe_client_quotas,
)
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.support.async_test import async_test
from tests.support.in_process import metadata_client

CONFIGS = {
    "users/a%40b": {"producer_byte_rate": "1000", "SCRAM-SHA-256": "salt=,iterations=4096"},
    "users/<default>": {"consumer_byte_rate": "5.5"},
    "users/nothing": {"SCRAM-SHA-256": "x"},
    "users/a%40b/clients/app": {"request_percentage": "50"},
    "users/a%40b/clients/<default>": {"request_percentage": "60"},
    "clients/app": {"producer_byte_rate": "7", "connection_creation_rate": "9"},
    "ips/1.2.3.4": {"connection_creation_rate": "2"},
    "ips/<default>": {"connection_creation_rate": "3"},
}


def opened() -> AbstractAsyncContextManager[MetadataClient]:
    return metadata_client.opened(CONFIGS)


def exact(kind: str, name: str) -> FilterComponent:
    return FilterComponent(kind, MatchType.EXACT, name)


def default(kind: str) -> FilterComponent:
    return FilterComponent(kind, MatchType.DEFAULT, None)


def any_of(kind: str) -> FilterComponent:
    return FilterComponent(kind, MatchType.SPECIFIED, None)


U: dict[str, str | None] = {USER: "a@b"}
D: dict[str, str | None] = {USER: None}
UA: dict[str, str | None] = {USER: "a@b", CLIENT_ID: "app"}
UD: dict[str, str | None] = {USER: "a@b", CLIENT_ID: None}
A: dict[str, str | None] = {CLIENT_ID: "app"}
I1: dict[str, str | None] = {IP: "1.2.3.4"}
ID: dict[str, str | None] = {IP: None}


@pytest.mark.parametrize(
    ("components", "strict", "expected"),
    [
        ((), False, [D, U, A, UD, UA, I1, ID]),
        ((), True, []),
        ((exact(USER, "a@b"),), False, [U, UD, UA]),
        ((exact(USER, "a@b"),), True, [U]),
        ((exact(USER, "nobody"),), False, []),
        ((default(USER),), False, [D]),
        ((any_of(USER),), True, [D, U]),
        ((exact(CLIENT_ID, "app"),), False, [A, UA]),
        ((exact(CLIENT_ID, "app"),), True, [A]),
        ((exact(USER, "a@b"), any_of(CLIENT_ID)), True, [UD, UA]),
        ((exact(USER, "a@b"), default(CLIENT_ID)), True, [UD]),
        ((exact(IP, "1.2.3.4"),), False, [I1]),
        ((default(IP),), True, [ID]),
        ((any_of(IP),), False, [I1, ID]),
    ],
)
@async_test
async def test_filter(
    components: tuple[FilterComponent, ...], strict: bool, expected: list[dict[str, str | None]]
) -> None:
    async with opened() as client:
        found = await describe_client_quotas(client, components, strict=strict)
        assert [entry.entity for entry in found] == expected


@async_test
async def test_quotas_alone_are_told_and_those_of_the_kind() -> None:
    async with opened() as client:
        found = await describe_client_quotas(client, (), strict=False)
        assert {tuple(entry.entity.items()): entry.quotas for entry in found} == {
            tuple(U.items()): {"producer_byte_rate": 1000.0},
            tuple(D.items()): {"consumer_byte_rate": 5.5},
            tuple(UA.items()): {"request_percentage": 50.0},
            tuple(UD.items()): {"request_percentage": 60.0},
            tuple(A.items()): {"producer_byte_rate": 7.0},
            tuple(I1.items()): {"connection_creation_rate": 2.0},
            tuple(ID.items()): {"connection_creation_rate": 3.0},
        }


@pytest.mark.parametrize(
    ("components", "code", "message"),
    [
        ((exact("planet", "x"),), ErrorCode.UNSUPPORTED_VERSION, "Custom entity type 'planet' not supported"),
        ((exact("", "x"),), ErrorCode.INVALID_REQUEST, "Unexpected empty filter component entity type"),
        ((default(USER), default(USER)), ErrorCode.INVALID_REQUEST, "Duplicate user filter component entity type"),
        ((any_of(CLIENT_ID),) * 2, ErrorCode.INVALID_REQUEST, "Duplicate client filter component entity type"),
        (
            (default(IP), default(USER)),
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination, IP filter component should not be used with user or clientId "
            "filter component.",
        ),
    ],
)
@async_test
async def test_filters_that_make_no_sense(
    components: tuple[FilterComponent, ...], code: ErrorCode, message: str
) -> None:
    async with opened() as client:
        with pytest.raises(KafkaError) as refused:
            await describe_client_quotas(client, components, strict=False)
        assert (refused.value.code, refused.value.message) == (code, message)

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import chain, repeat
from typing import cast

import pytest

from odradek.controller.admin.config_admin import (
    LOGGED_KEYS,
    ConfigAdmin,
    ConfigChange,
    ResourceChanges,
    apply_changes,
)
from odradek.controller.admin.policies import (
    AlterConfigMetadata,
    AlterConfigPolicy,
    ConfigResource,
    Policies,
    PolicyViolation,
)
from odradek.controller.loop_turns import ITEMS_A_TURN
from odradek.controller.model.config_codes import AlterOperation, ResourceType
from odradek.controller.tree.metadata_tree import Delete, MetadataTree, Operation, SessionExpired, SetData
from odradek.controller.znodes import znodes
from odradek.controller.znodes.config_nodes import change_topic_config
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode, KafkaError
from odradek.storage.config.config_def import ConfigDef, ConfigError, ConfigKey, ConfigType, Importance
from odradek.storage.config.log_config import TOPIC_CONFIGS
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import ControllerCluster, controller_cluster
from tests.support.garbage import no_collection

TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER
SET, DELETE, APPEND, SUBTRACT = AlterOperation


class _BrokerConfigs:
    definition = ConfigDef(
        (
            ConfigKey("log.cleaner.threads", ConfigType.INT, "1", Importance.LOW, ""),
            ConfigKey("some.list", ConfigType.LIST, "a,b", Importance.LOW, ""),
        )
    )

    def __init__(self) -> None:
        self.validated: list[tuple[dict[str, str], bool]] = []
        self.reloaded: list[dict[str, str]] = []

    def validate_change(self, configs: Mapping[str, str], *, per_broker: bool) -> None:
        self.validated.append((dict(configs), per_broker))
        if "bad" in configs:
            raise ConfigError("Cannot update these configs dynamically: Set(bad)")

    async def from_persistent(self, stored: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
        return {name: text.removeprefix("sealed ") for name, text in stored.items()}

    async def of_config_providers(self, stored: Mapping[str, str]) -> dict[str, str]:
        return {}

    async def check_stores(self, configs: Mapping[str, str], *, per_broker: bool) -> None: ...

    async def reload_files(self, configs: Mapping[str, str]) -> None:
        if "bad-file" in configs:
            raise ConfigError("Validation of dynamic config update of SSLFactory failed: no key")
        self.reloaded.append(dict(configs))

    async def to_persistent(self, configs: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
        if configs.get("password") == "unspeakable":
            raise ConfigError("Password encoder secret not configured")
        return {name: f"sealed {text}" if name == "password" else text for name, text in configs.items()}


@asynccontextmanager
async def with_admin(policy: AlterConfigPolicy | None = None) -> AsyncIterator[tuple[ControllerCluster, ConfigAdmin]]:
    async with controller_cluster() as cluster:
        controller = await cluster.start(0)
        await cluster.create("t", {0: [0]}, {"retention.ms": "1000", "cleanup.policy": "delete"})
        yield (
            cluster,
            ConfigAdmin(
                client=controller.client,
                has_topic={"t"}.__contains__,
                broker_id=0,
                broker_configs=_BrokerConfigs(),
                broker_settings=dict,
                policies=Policies(cluster.clock, alter_config=policy),
            ),
        )


def changes(resource_type: int, name: str, *entries: ConfigChange) -> list[ResourceChanges]:
    return [ResourceChanges(resource_type, name, entries)]


@async_test
async def test_alter_replaces_everything_and_notifies() -> None:
    async with with_admin() as (cluster, admin):
        resources = changes(TOPIC, "t", ConfigChange("segment.ms", "60000"))
        assert await admin.alter_configs(resources, validate_only=False) == [None]
        assert await admin.topic_overrides("t") == {"segment.ms": "60000"}
        (name,) = await cluster.client.children(znodes.CONFIG_CHANGES)
        assert name == "config_change_0000000000"
        (data,) = await cluster.client.datas([f"{znodes.CONFIG_CHANGES}/{name}"])
        assert data == b'{"version":2,"entity_path":"topics/t"}'


@async_test
async def test_incremental_alter_changes_key_by_key() -> None:
    async with with_admin() as (_, admin):
        resources = changes(
            TOPIC,
            "t",
            ConfigChange("segment.ms", "60000", SET),
            ConfigChange("retention.ms", None, DELETE),
            ConfigChange("cleanup.policy", "compact", APPEND),
        )
        assert await admin.incremental_alter_configs(resources, validate_only=True) == [None]
        assert await admin.topic_overrides("t") == {"retention.ms": "1000", "cleanup.policy": "delete"}
        assert await admin.incremental_alter_configs(resources, validate_only=False) == [None]
        assert await admin.topic_overrides("t") == {"segment.ms": "60000", "cleanup.policy": "delete,compact"}


@async_test
async def test_a_topic_may_disable_remote_storage() -> None:
    """Its node has it from before the cluster's brokers lost tiered storage. AlterConfigs leaves it out, too."""
    async with with_admin() as (cluster, admin):
        stored = {"remote.storage.enable": "true", "retention.ms": "5"}
        await change_topic_config(cluster.client, "t", stored)
        deleted = changes(
            TOPIC, "t", ConfigChange("remote.storage.enable", None, DELETE), ConfigChange("retention.ms", "7")
        )
        assert await admin.incremental_alter_configs(deleted, validate_only=False) == [None]
        assert await admin.topic_overrides("t") == {"retention.ms": "7"}
        await change_topic_config(cluster.client, "t", stored)
        replaced = changes(TOPIC, "t", ConfigChange("segment.ms", "60000"))
        assert await admin.alter_configs(replaced, validate_only=False) == [None]
        assert await admin.topic_overrides("t") == {"segment.ms": "60000"}


@pytest.mark.parametrize(
    ("resources", "code", "message"),
    [
        (
            changes(TOPIC, "", ConfigChange("a", "b")),
            ErrorCode.INVALID_REQUEST,
            "Default topic resources are not allowed.",
        ),
        (
            changes(TOPIC, "none", ConfigChange("retention.ms", "1")),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'none' does not exist.",
        ),
        (
            changes(TOPIC, "..", ConfigChange("no.such", "1", SUBTRACT)),
            ErrorCode.INVALID_CONFIG,
            "Invalid config value for resource ConfigResource(type=TOPIC, name='..'): "
            'Invalid path string "/config/topics/.." caused by relative paths not allowed @16',
        ),
        (
            changes(TOPIC, "t", ConfigChange("retention.ms", "x")),
            ErrorCode.INVALID_CONFIG,
            "Invalid config value for resource ConfigResource(type=TOPIC, name='t'): "
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        (
            changes(TOPIC, "t", ConfigChange("no.such", "x")),
            ErrorCode.INVALID_CONFIG,
            "Unknown topic config name: no.such",
        ),
        (
            changes(TOPIC, "t", ConfigChange("retention.ms", "1"), ConfigChange("retention.ms", "2")),
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (
            changes(TOPIC, "t", ConfigChange("retention.ms", None)),
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms",
        ),
        (
            changes(TOPIC, "t", ConfigChange("retention.ms", "1", APPEND)),
            ErrorCode.INVALID_CONFIG,
            "Config value append is not allowed for config key: retention.ms",
        ),
        *(
            (
                changes(*resource, ConfigChange("no.such", "1", operation)),
                ErrorCode.UNKNOWN_SERVER_ERROR,
                DEFAULT_MESSAGES[ErrorCode.UNKNOWN_SERVER_ERROR],
            )
            for resource in ((TOPIC, "t"), (TOPIC, "none"), (BROKER, "0"), (BROKER, ""))
            for operation in (APPEND, SUBTRACT)
        ),
        (
            changes(BROKER, "0", ConfigChange("log.cleaner.threads", "1", 9)),
            ErrorCode.INVALID_REQUEST,
            "Unknown operations type 9",
        ),
        (
            changes(TOPIC, "t", ConfigChange("retention.ms", "1", 9)),
            ErrorCode.UNKNOWN_SERVER_ERROR,
            DEFAULT_MESSAGES[ErrorCode.UNKNOWN_SERVER_ERROR],
        ),
        (changes(32, "t", ConfigChange("a", "1")), ErrorCode.INVALID_REQUEST, "Unknown resource type 32"),
        (
            changes(BROKER, "7", ConfigChange("log.cleaner.threads", "1")),
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 0, but received 7",
        ),
        *(
            (
                changes(BROKER, name, ConfigChange("log.cleaner.threads", "1")),
                ErrorCode.INVALID_REQUEST,
                f"Node id must be an integer, but it is: {name}",
            )
            for name in ("x", " 0 ", "0_0", "2147483648")
        ),
        (
            changes(BROKER, "0", ConfigChange("bad", "1")),
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically: Set(bad)",
        ),
        (
            changes(BROKER, "0", ConfigChange("bad-file", "1")),
            ErrorCode.INVALID_CONFIG,
            "Invalid config value for resource ConfigResource(type=BROKER, name='0'): "
            "Validation of dynamic config update of SSLFactory failed: no key",
        ),
    ],
)
@async_test
async def test_refused_changes(resources: list[ResourceChanges], code: ErrorCode, message: str) -> None:
    async with with_admin() as (cluster, admin):
        (error,) = await admin.incremental_alter_configs(resources, validate_only=False)
        assert isinstance(error, KafkaError)
        assert (error.code, error.message) == (code, message)
        assert await cluster.client.children(znodes.CONFIG_CHANGES) == ()


@async_test
async def test_resources_fail_by_themselves_and_appear_once() -> None:
    async with with_admin() as (_, admin):
        one = changes(TOPIC, "t", ConfigChange("retention.ms", "5"))
        results = await admin.alter_configs(one + changes(TOPIC, "none"), validate_only=False)
        assert results[0] is None
        assert results[1] is not None
        for error in await admin.alter_configs(one + one, validate_only=False):
            assert error is not None
            assert error.message == "Each resource must appear at most once."


class _ExpiredOnce:
    """A tree whose session expires with the first operation."""

    def __init__(self, tree: MetadataTree) -> None:
        self._answers = chain([SessionExpired()], repeat(None))
        self._tree = tree

    async def run(self, operation: Operation[object]) -> object:
        if (error := next(self._answers)) is not None:
            raise error
        return await self._tree.run(operation)


@pytest.mark.parametrize("is_expired", [True, False])
@async_test
async def test_a_resource_whose_node_cannot_be_read_fails_alone(is_expired: bool) -> None:
    async with with_admin() as (cluster, admin):
        if is_expired:
            admin._client = MetadataClient(cast("MetadataTree", _ExpiredOnce(cluster.client.tree)))
        else:
            unreadable = b'{"version":1,"config":{"retention.ms":5}}'
            await cluster.client.tree.run(SetData(znodes.entity_config_path("topics/t"), unreadable))
        resources = [
            *changes(TOPIC, "t", ConfigChange("segment.ms", "60000")),
            *changes(BROKER, "0", ConfigChange("log.cleaner.threads", "2")),
        ]
        failed, altered = await admin.incremental_alter_configs(resources, validate_only=False)
        assert isinstance(failed, KafkaError)
        assert (failed.code, failed.specific_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
        assert altered is None


@async_test
async def test_a_deleted_topic_that_the_metadata_still_name_gets_no_config() -> None:
    async with with_admin() as (cluster, admin):
        await cluster.client.tree.run(Delete(znodes.entity_config_path("topics/t")))
        resources = changes(TOPIC, "t", ConfigChange("segment.ms", "60000"))
        assert await admin.alter_configs(resources, validate_only=False) == [None]
        await cluster.admin().delete_topics(["t"], timeout_ms=1000)
        await cluster.settle()
        for validate_only in (True, False):
            (error,) = await admin.alter_configs(resources, validate_only=validate_only)
            assert isinstance(error, KafkaError)
            assert (error.code, error.message) == (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "Topic 't' does not exist.",
            )
        assert not await cluster.client.exists(znodes.entity_config_path("topics/t"))


@async_test
async def test_refusals_are_freed_with_the_request() -> None:
    """A traceback would refer to the frame that has the results: a circle for each of 150,000 resources."""
    async with with_admin() as (_, admin):
        refused = [ResourceChanges(TOPIC, f"none-{number}", []) for number in range(100)]
        broken = changes(TOPIC, "t", ConfigChange("retention.ms", "no number"))
        with no_collection():
            results = await admin.incremental_alter_configs([*refused, *broken], validate_only=False)
            assert all(error is not None and error.__traceback__ is error.__cause__ is None for error in results)
            kept = [weakref.ref(error) for error in results if error is not None]
            del results
            assert [reference() for reference in kept if reference() is not None] == []


@async_test
async def test_broker_configs_and_the_default_of_all_brokers() -> None:
    async with with_admin() as (cluster, admin):
        own = changes(BROKER, "0", ConfigChange("log.cleaner.threads", "2"))
        default = changes(BROKER, "", ConfigChange("some.list", "c", APPEND), ConfigChange("x", None, DELETE))
        assert await admin.incremental_alter_configs(own + default, validate_only=False) == [None, None]
        assert await cluster.client.entity_config("brokers/0") == {"log.cleaner.threads": "2"}
        assert await cluster.client.entity_config("brokers/<default>") == {"some.list": "a,b,c"}
        padded = changes(BROKER, "+00", ConfigChange("log.cleaner.threads", "3"))
        assert await admin.incremental_alter_configs(padded, validate_only=False) == [None]
        assert await cluster.client.entity_config("brokers/0") == {"log.cleaner.threads": "3"}


def test_lists_grow_and_shrink() -> None:
    def apply(value: str, operation: AlterOperation, configs: Mapping[str, str]) -> str:
        return apply_changes(configs, [ConfigChange("cleanup.policy", value, operation)], TOPIC_CONFIGS)[
            "cleanup.policy"
        ]

    assert apply("compact", APPEND, {}) == "delete,compact"
    assert apply("delete,compact", APPEND, {"cleanup.policy": "compact"}) == "compact,delete"
    assert apply("delete", SUBTRACT, {"cleanup.policy": "delete,compact"}) == "compact"
    assert apply("delete", SUBTRACT, {}) == ""
    assert apply("compact,", APPEND, {"cleanup.policy": "delete,"}) == "delete,compact"
    assert apply(",", APPEND, {"cleanup.policy": "delete"}) == "delete"
    assert apply("", APPEND, {"cleanup.policy": "delete"}) == "delete,", "an empty text has one part, which is empty"
    assert apply("compact,,", SUBTRACT, {"cleanup.policy": "delete,compact,"}) == "delete"
    assert apply("delete", SUBTRACT, {"cleanup.policy": ","}) == ""


@async_test
async def test_overrides_of_what_is_no_topic() -> None:
    async with with_admin() as (_, admin):
        for name, code in (("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION)):
            with pytest.raises(KafkaError) as refusal:
                await admin.topic_overrides(name)
            assert refusal.value.code is code


@async_test
async def test_secrets_are_sealed_in_the_tree() -> None:
    async with with_admin() as (cluster, admin):
        both = changes(BROKER, "0", ConfigChange("password", "x"), ConfigChange("plain", "y"))
        assert await admin.alter_configs(both, validate_only=False) == [None]
        assert await cluster.client.entity_config("brokers/0") == {"password": "sealed x", "plain": "y"}
        plain = changes(BROKER, "0", ConfigChange("plain", "z"))
        assert await admin.incremental_alter_configs(plain, validate_only=False) == [None]
        assert await cluster.client.entity_config("brokers/0") == {"password": "sealed x", "plain": "z"}
        [error] = await admin.alter_configs(
            changes(BROKER, "0", ConfigChange("password", "unspeakable")), validate_only=False
        )
        assert error is not None
        assert error.code is ErrorCode.INVALID_CONFIG
        assert "unspeakable" not in repr(changes(BROKER, "0", ConfigChange("password", "unspeakable")))


@async_test
async def test_many_refused_resources_leave_others_their_turn_and_few_keys_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with with_admin() as (_, admin):
        changes = [ConfigChange(f"key-{number}", None) for number in range(2 * LOGGED_KEYS)]
        many = [ResourceChanges(99, str(number), changes) for number in range(3 * ITEMS_A_TURN)]
        turns = 0
        with caplog.at_level(logging.INFO, "odradek.controller"):
            work = asyncio.ensure_future(admin.alter_configs(many, validate_only=False))
            while not work.done():
                turns += 1
                await asyncio.sleep(0)
        assert all(error is not None for error in await work)
        assert turns >= 3
        line = next(record.getMessage() for record in caplog.records if "alter configs" in record.getMessage())
        keys = line.partition("with keys ")[2].partition("]")[0]
        assert keys.count("key-") == LOGGED_KEYS


class _Recording(AlterConfigPolicy):
    def __init__(self) -> None:
        self.asked: list[AlterConfigMetadata] = []

    def validate(self, metadata: AlterConfigMetadata, /) -> None:
        self.asked.append(metadata)
        if "segment.ms" in metadata.configs:
            raise PolicyViolation("not segment.ms")


@async_test
async def test_a_policy_sees_the_entries_of_the_request_and_refuses_its_resource_only() -> None:
    policy = _Recording()
    async with with_admin(policy) as (_, admin):
        refused, taken = await admin.alter_configs(
            [
                ResourceChanges(TOPIC, "t", [ConfigChange("segment.ms", "60000")]),
                ResourceChanges(BROKER, "", [ConfigChange("log.cleaner.threads", "2")]),
            ],
            validate_only=False,
        )
        assert refused is not None
        assert (refused.code, refused.message) == (ErrorCode.POLICY_VIOLATION, "not segment.ms")
        assert taken is None
        assert (await admin.topic_overrides("t"))["retention.ms"] == "1000"
        incremental = changes(
            TOPIC, "t", ConfigChange("retention.ms", None, DELETE), ConfigChange("cleanup.policy", "compact", APPEND)
        )
        assert await admin.incremental_alter_configs(incremental, validate_only=True) == [None]
        assert await admin.incremental_alter_configs(changes(BROKER, "0"), validate_only=True) == [None]
        assert policy.asked == [
            AlterConfigMetadata(ConfigResource("TOPIC", "t"), {"segment.ms": "60000"}),
            AlterConfigMetadata(ConfigResource("BROKER", ""), {"log.cleaner.threads": "2"}),
            AlterConfigMetadata(ConfigResource("TOPIC", "t"), {"retention.ms": None, "cleanup.policy": "compact"}),
            AlterConfigMetadata(ConfigResource("BROKER", "0"), {}),
        ]


@async_test
async def test_a_policy_is_not_asked_about_configs_that_are_invalid_anyway() -> None:
    policy = _Recording()
    async with with_admin(policy) as (_, admin):
        for resource in (
            changes(TOPIC, "t", ConfigChange("retention.ms", "x")),
            changes(BROKER, "0", ConfigChange("bad", "1")),
            changes(TOPIC, "unknown"),
        ):
            (error,) = await admin.alter_configs(resource, validate_only=False)
            assert error is not None
        assert policy.asked == []


@async_test
async def test_certificates_are_reloaded_only_for_a_client_that_may_alter_this_broker() -> None:
    async with with_admin() as (_, admin):
        broker_configs = admin._broker_configs
        assert isinstance(broker_configs, _BrokerConfigs)

        def refuse(resource: ResourceChanges) -> None:
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

        change = ConfigChange("log.cleaner.threads", "2")
        own, all_brokers = changes(BROKER, "0", change), changes(BROKER, "", change)
        for alter in (admin.alter_configs, admin.incremental_alter_configs):
            (error,) = await alter(own, validate_only=False, require_right=refuse)
            assert error is not None
            assert error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            assert await alter(own, validate_only=True) == [None]
            assert await alter(all_brokers, validate_only=False) == [None]
        assert broker_configs.reloaded == []
        assert await admin.incremental_alter_configs(own, validate_only=False) == [None]
        assert broker_configs.reloaded == [{"log.cleaner.threads": "2"}]

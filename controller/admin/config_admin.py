"""AlterConfigs and IncrementalAlterConfigs of topics and brokers, DescribeConfigs of topics.

AlterConfigs replaces the whole config of an entity; IncrementalAlterConfigs changes single keys and can append to and
subtract from lists. Both validate the result, write it to the tree and notify every broker. Each resource of a request
succeeds or fails by itself.

Kafka: ZkAdminManager.alterConfigs, ZkAdminManager.incrementalAlterConfigs, ConfigAdminManager, ConfigHelper.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from odradek.controller.admin.policies import AlterConfigMetadata, ConfigResource, Policies
from odradek.controller.loop_turns import in_turns, repeated_in_turns
from odradek.controller.model import topic_names
from odradek.controller.model.config_codes import AlterOperation, ConfigSource, ResourceType
from odradek.controller.tree.metadata_tree import BadArguments, TreeError, check_path
from odradek.controller.znodes import znodes
from odradek.controller.znodes.config_nodes import change_entity_config, change_topic_config, no_topic
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.java_split import java_split
from odradek.protocol.made_once import FEW
from odradek.protocol.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym
from odradek.storage.config.config_def import ConfigDef, ConfigError, ConfigType, parse_int32, to_text
from odradek.storage.config.log_config import (
    TOPIC_CONFIG_SYNONYMS,
    TOPIC_CONFIGS,
    effective_texts,
    usable_overrides,
    validate_topic_configs,
)

if TYPE_CHECKING:
    from odradek.controller.znodes.metadata_client import MetadataClient
    from odradek.protocol.error_patterns import ErrorPattern, ErrorPatterns

ALTER_OPERATIONS: Final = frozenset(AlterOperation)

logger = logging.getLogger(__name__)


LOGGED_KEYS: Final = 100
"""Number of keys of a refused request that are logged. A request of 1 MB can have 200,000: seconds of logging."""


class ConfigChange(NamedTuple):
    """One entry of a request, its operation not validated yet. AlterConfigs has only SET. Its repr has no value, which
    may be secret.
    """

    name: str
    value: str | None
    operation: int = AlterOperation.SET

    def __repr__(self) -> str:
        return f"ConfigChange({self.name!r}, operation={self.operation})"


class ResourceChanges(NamedTuple):
    """The entries of one resource. A broker resource without a name is the default of all brokers."""

    resource_type: int
    resource_name: str
    changes: Sequence[ConfigChange]


class RequestRefused(KafkaError):
    """Refuses one resource, and with it the answers of all: what the request could alter is altered, as in Apache."""


Outcome: TypeAlias = "KafkaError | ErrorPattern | None"
"""Of the changes of one resource: None or the error. That of one among many is without its name: `error_about`."""

RequireRight = Callable[[ResourceChanges], None]
"""Raises: KafkaError if the client may not alter the configs of the resource, RequestRefused for client metrics. A
change of a broker's configs is validated before that is asked, a change of a topic's configs after it, as in Apache
Kafka."""

AlterLoggers = Callable[[ResourceChanges], None]
"""Changes the levels of this broker's loggers. Raises: KafkaError."""


def _refuse_loggers(resource: ResourceChanges) -> None:
    raise _unknown_type(resource)


def _unknown_type(resource: ResourceChanges) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {int(resource.resource_type)}")


class SynonymValue(Protocol):
    """A value of a key in one source of the broker's configuration."""

    @property
    def name(self) -> str: ...

    @property
    def value(self) -> str | None: ...

    @property
    def source(self) -> int: ...


class BrokerConfigs(Protocol):
    """The port to this broker's own configuration, for altering it."""

    @property
    def definition(self) -> ConfigDef: ...

    def validate_change(self, configs: Mapping[str, str], *, per_broker: bool) -> None:
        """Raise ConfigError if these are not valid dynamic configs of this broker, or of the default of all brokers."""

    async def check_stores(self, configs: Mapping[str, str], *, per_broker: bool) -> None:
        """Check keys and certificates that `configs` name, after `validate_change`. Raises: ConfigError."""

    async def reload_files(self, configs: Mapping[str, str]) -> None:
        """Use keys and certificates whose files have changed under the same paths. Raises: ConfigError."""

    async def from_persistent(self, stored: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
        """The stored configs without unusable ones, and with decrypted secrets."""

    async def of_config_providers(self, stored: Mapping[str, str]) -> dict[str, str]:
        """Those stored configs, as they are stored, that define or use config providers, which is ignored here."""

    async def to_persistent(self, configs: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
        """The configs to store, with encrypted secrets. Raises ConfigError if they cannot be encrypted."""


class ConfigAdmin:
    """See the module."""

    def __init__(
        self,
        *,
        client: MetadataClient,
        has_topic: Callable[[str], bool],
        broker_id: int,
        broker_configs: BrokerConfigs,
        broker_settings: Callable[[], Mapping[str, str]],
        policies: Policies,
    ) -> None:
        """`has_topic`: whether the metadata of this broker name a topic. One of which no partition ever had a leader is
        in the tree, and for clients it does not exist."""
        self._client = client
        self._has_topic = has_topic
        self._broker_id = broker_id
        self._broker_configs = broker_configs
        self._broker_settings = broker_settings
        self._policies = policies

    async def topic_overrides(self, topic: str) -> dict[str, str]:
        """The configs set on a topic. Raises KafkaError if the topic does not exist."""
        topic_names.validate_topic_name(topic)
        if not self._has_topic(topic):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return await self._client.entity_config(f"topics/{topic}")

    async def alter_configs(
        self,
        resources: Sequence[ResourceChanges],
        *,
        validate_only: bool,
        require_right: RequireRight = lambda resource: None,
    ) -> list[Outcome]:
        """Replace the configs of each resource. Returns the outcome of each."""
        return await self._alter_all(resources, validate_only, require_right, _refuse_loggers, is_incremental=False)

    async def incremental_alter_configs(
        self,
        resources: Sequence[ResourceChanges],
        *,
        validate_only: bool,
        require_right: RequireRight = lambda resource: None,
        alter_loggers: AlterLoggers = _refuse_loggers,
    ) -> list[Outcome]:
        """Change single keys of each resource. Returns the outcome of each."""
        return await self._alter_all(resources, validate_only, require_right, alter_loggers, is_incremental=True)

    async def _alter_all(
        self,
        resources: Sequence[ResourceChanges],
        validate_only: bool,
        require_right: RequireRight,
        alter_loggers: AlterLoggers,
        *,
        is_incremental: bool,
    ) -> list[Outcome]:
        named_twice = await _named_twice(resources)
        results: list[Outcome] = []
        patterns = _patterns() if len(resources) > FEW else None
        at_most_once = KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        repetitions = 0
        whole: RequestRefused | None = None
        async for resource in in_turns(resources):
            if named_twice and (resource.resource_type, resource.resource_name) in named_twice:
                repetitions += 1
                results.append(at_most_once)  # one error for all: a request may name a resource 150,000 times
                continue
            try:
                await _check_entries(resource.changes)
                if resource.resource_type == ResourceType.BROKER_LOGGER:
                    alter_loggers(resource)
                else:
                    await self._alter(resource, validate_only, require_right, is_incremental=is_incremental)
            except (KafkaError, TreeError, BadZnode) as error:
                refusal = error if isinstance(error, KafkaError) else KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
                if isinstance(error, RequestRefused):
                    whole = whole or error.as_value()
                logger.info(
                    "Error processing alter configs request for %s %s with keys %s: %r",
                    *(
                        resource.resource_type,
                        resource.resource_name,
                        [change.name for change in resource.changes[:LOGGED_KEYS]],
                    ),
                    error,
                )
                kept = refusal.as_value() if patterns is None else patterns.kept(refusal, resource.resource_name)
                results.append(kept)
            else:
                results.append(None)
        if repetitions:
            logger.info("A request to alter configs names resources more than once, in %d of its entries", repetitions)
        return results if whole is None else [whole for _ in results]

    async def _alter(
        self, resource: ResourceChanges, validate_only: bool, require_right: RequireRight, *, is_incremental: bool
    ) -> None:
        match resource.resource_type:
            case ResourceType.TOPIC:
                require_right(resource)
                await self._alter_topic(resource, validate_only=validate_only, is_incremental=is_incremental)
            case ResourceType.BROKER:
                await self._alter_broker(resource, validate_only, require_right, is_incremental=is_incremental)
            case ResourceType.CLIENT_METRICS:
                require_right(resource)
                message = "AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS"
                raise KafkaError(ErrorCode.INVALID_REQUEST, message)
            case _:
                raise _unknown_type(resource)

    async def _alter_topic(self, resource: ResourceChanges, *, validate_only: bool, is_incremental: bool) -> None:
        topic = resource.resource_name
        if not topic:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        path = znodes.entity_config_path(f"topics/{topic}")
        if is_incremental:
            try:
                check_path(path)
            except BadArguments as error:  # Apache reads the node before it looks for the topic
                raise _invalid_value(ConfigResource("TOPIC", topic), str(error)) from error
        exists = self._has_topic(topic)
        node = await self._client.get(path) if exists else None
        base = znodes.decode_entity_config(node.data) if is_incremental and node is not None else {}
        async for change in in_turns(resource.changes):
            if change.operation not in ALTER_OPERATIONS:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Apache: validated for brokers only, fails here
        configs = apply_changes(base, resource.changes, TOPIC_CONFIGS)  # what it refuses is refused before the topic is
        if not exists:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")
        if node is None and not await self._client.exists(znodes.topic_path(topic)):  # every topic has a config
            raise no_topic(topic)
        try:
            validate_topic_configs(configs, self._broker_settings())
        except KafkaError as error:
            if isinstance(error.__cause__, ConfigError):
                raise _invalid_value(ConfigResource("TOPIC", topic), error.message) from error
            raise
        self._policies.validate_alter_config(_policy_metadata(ConfigResource("TOPIC", topic), resource.changes))
        if not validate_only:
            logger.info("Updating topic %s with new configuration: %s", topic, configs)
            await change_topic_config(self._client, topic, configs)

    async def _alter_broker(
        self, resource: ResourceChanges, validate_only: bool, require_right: RequireRight, *, is_incremental: bool
    ) -> None:
        name = resource.resource_name
        entity_path = f"brokers/{self._own_id(name) if name else znodes.DEFAULT_ENTITY}"
        stored = await self._client.entity_config(entity_path) if is_incremental else {}
        base = await self._broker_configs.from_persistent(stored, per_broker=bool(name))
        configs = apply_changes(base, resource.changes, self._broker_configs.definition)
        try:
            self._broker_configs.validate_change(configs, per_broker=bool(name))
            await self._broker_configs.check_stores(configs, per_broker=bool(name))
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
        require_right(resource)
        self._policies.validate_alter_config(_policy_metadata(ConfigResource("BROKER", name), resource.changes))
        if not validate_only:
            try:
                if name:
                    await self._broker_configs.reload_files(configs)
                logger.info("Updating %s with new configuration for %s", entity_path, sorted(configs))
                persistent = await self._broker_configs.to_persistent(configs, per_broker=bool(name))
            except ConfigError as error:  # what `validate_change` refuses is INVALID_REQUEST, all after it is this
                raise _invalid_value(ConfigResource("BROKER", name), str(error)) from error
            # They have no effect here, but may have one in an Apache broker of the cluster.
            changed = {change.name for change in resource.changes}
            kept = await self._broker_configs.of_config_providers(stored)
            persistent |= {name: text for name, text in kept.items() if name not in changed}
            await change_entity_config(self._client, entity_path, persistent)

    def _own_id(self, name: str) -> int:
        """This broker's id, which a request may also write as `+0` or `00`. Raises: KafkaError for another broker's."""
        broker_id = parse_int32(name)
        if broker_id is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
        if broker_id != self._broker_id:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {self._broker_id}, but received {name}"
            )
        return broker_id


def _invalid_value(resource: ConfigResource, reason: str) -> KafkaError:
    """What ZkAdminManager makes of a ConfigException and of an IllegalArgumentException."""
    return KafkaError(ErrorCode.INVALID_CONFIG, f"Invalid config value for resource {resource}: {reason}")


def _policy_metadata(resource: ConfigResource, changes: Sequence[ConfigChange]) -> AlterConfigMetadata:
    return AlterConfigMetadata(resource, {change.name: change.value for change in changes})


def _patterns() -> ErrorPatterns:
    from odradek.protocol.error_patterns import ErrorPatterns  # only large requests need it

    return ErrorPatterns()


async def _named_twice(resources: Sequence[ResourceChanges]) -> set[tuple[int, str]]:
    """The types and names of the resources that are there more than once."""
    if len(resources) == 1:
        return set()
    return await repeated_in_turns(Mapped(_type_and_name, resources))


def _type_and_name(resource: ResourceChanges) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


async def _check_entries(changes: Sequence[ConfigChange]) -> None:
    names, null = [], []
    async for change in in_turns(changes):
        names.append(change.name)
        if change.value is None and change.operation != AlterOperation.DELETE:
            null.append(change.name)
    if await repeated_in_turns(names) if len(names) > FEW else len(set(names)) < len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if null:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(null)}")


def apply_changes(configs: Mapping[str, str], changes: Sequence[ConfigChange], definition: ConfigDef) -> dict[str, str]:
    """The configs after the changes. APPEND and SUBTRACT are valid for lists only.

    Kafka: ConfigAdminManager.prepareIncrementalConfigs.
    """
    result = dict(configs)
    for change in changes:
        value = change.value or ""
        match change.operation:
            case AlterOperation.SET:
                result[change.name] = value
            case AlterOperation.DELETE:
                result.pop(change.name, None)
            case AlterOperation.APPEND:
                current = _current_list(change.name, result, definition, "append")
                added = [item for item in java_split(value) if item not in current]
                result[change.name] = ",".join(current + added)
            case AlterOperation.SUBTRACT:
                current = _current_list(change.name, result, definition, "subtract")
                for item in java_split(value):
                    if item in current:
                        current.remove(item)
                result[change.name] = ",".join(current)
            case other:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {other}")
    return result


def _current_list(name: str, configs: Mapping[str, str], definition: ConfigDef, verb: str) -> list[str]:
    key = definition.get(name)
    if key is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Apache: the lookup fails before its own refusal
    if key.type is not ConfigType.LIST:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Config value {verb} is not allowed for config key: {name}")
    text = configs[name] if name in configs else to_text(key.default_value())
    return java_split(text) if text else []


def describe_topic_configs(
    topic: str,
    overrides: Mapping[str, str],
    broker_settings: Mapping[str, str],
    broker_synonyms: Callable[[str], Sequence[SynonymValue]],
    names: Sequence[str] | None = None,
) -> list[DescribeConfigsResourceResult]:
    """Every config of a topic, or those in `names`, with value and source.

    Synonyms and documentation are always set; the handler removes what was not requested.
    Kafka: ConfigHelper.createTopicConfigEntry.
    """
    texts = effective_texts(broker_settings, usable_overrides(topic, overrides))
    wanted = None if not names else set(names)
    results: list[DescribeConfigsResourceResult] = []
    for key in TOPIC_CONFIGS:
        if key.internal or (wanted is not None and key.name not in wanted):
            continue
        value = to_text(key.parse(texts[key.name]) if key.name in texts else key.default_value())
        synonyms: list[DescribeConfigsSynonym] = []
        if key.name in overrides:
            synonyms.append(DescribeConfigsSynonym(name=key.name, value=value, source=ConfigSource.TOPIC_CONFIG))
        for broker_name in TOPIC_CONFIG_SYNONYMS.get(key.name, ())[:1]:
            synonyms += [
                DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=int(synonym.source))
                for synonym in broker_synonyms(broker_name.name)
            ]
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
        results.append(
            DescribeConfigsResourceResult(
                name=key.name,
                value=value,
                config_source=source,
                is_default=source == ConfigSource.DEFAULT_CONFIG,
                synonyms=synonyms,
                config_type=int(key.type),
                documentation=key.doc,
            )
        )
    unknown = [name for name in overrides if name not in TOPIC_CONFIGS and (wanted is None or name in wanted)]
    return results + [_unknown_config(name) for name in unknown]


def _unknown_config(name: str) -> DescribeConfigsResourceResult:
    """A config of a topic with an unknown name; its value is hidden, because it may be secret."""
    return DescribeConfigsResourceResult(
        name=name,
        value=None,
        config_source=ConfigSource.TOPIC_CONFIG,
        is_sensitive=True,
        synonyms=[DescribeConfigsSynonym(name=name, value=None, source=ConfigSource.TOPIC_CONFIG)],
        documentation=None,
    )

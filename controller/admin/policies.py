"""Policies of an operator: Python classes that may refuse new topics and changes of configs.

`create.topic.policy.class.name` and `alter.config.policy.class.name` name them by their import paths; docs/policies.md
shows one of each. A policy is called on the event loop: while `validate` runs, the broker does nothing else. So it must
not wait for a disk or a network. A call of more than 50 ms is logged.

Kafka: CreateTopicPolicy, AlterConfigPolicy, PolicyViolationException, ZkAdminManager.validateTopicCreatePolicy,
ZkAdminManager.validateConfigPolicy.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeVar

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from odradek.timer.clock import Clock

logger = logging.getLogger(__name__)

SLOW_POLICY_MS: Final = 50
"""A longer call of a policy is logged: it holds up the event loop."""


class PolicyViolation(KafkaError):
    """What `validate` raises to refuse a request. The client gets POLICY_VIOLATION with the message."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.POLICY_VIOLATION, message)


class CreateTopicMetadata(NamedTuple):
    """A topic that a client wants to create. Kafka: CreateTopicPolicy.RequestMetadata."""

    topic: str
    num_partitions: int | None
    """None if the request assigns the replicas."""
    replication_factor: int | None
    """None if the request assigns the replicas."""
    replicas_assignments: Mapping[int, Sequence[int]] | None
    """The brokers of each partition, if the request assigns the replicas."""
    configs: Mapping[str, str]
    """The configs of the request, without defaults of the broker."""


class ConfigResource(NamedTuple):
    """What is changed. A BROKER without a name stands for the dynamic default of all brokers."""

    type: Literal["TOPIC", "BROKER"]
    name: str

    def __str__(self) -> str:
        return f"ConfigResource(type={self.type}, name='{self.name}')"


class AlterConfigMetadata(NamedTuple):
    """A change of configs that a client wants. Kafka: AlterConfigPolicy.RequestMetadata."""

    resource: ConfigResource
    configs: Mapping[str, str | None]
    """The values as in the request: with IncrementalAlterConfigs the operand, and None for a config that is deleted."""


class CreateTopicPolicy(Protocol):
    """May refuse a new topic, also one that is created automatically or only validated."""

    def configure(self, configs: Mapping[str, str], /) -> None:
        """Called once, before the broker serves clients. `configs` are the broker's settings as texts."""

    @abstractmethod
    def validate(self, metadata: CreateTopicMetadata, /) -> None:
        """Raise PolicyViolation to refuse the topic. Any other exception answers UNKNOWN_SERVER_ERROR."""

    def close(self) -> None:
        """Called once, when the broker stops."""


class AlterConfigPolicy(Protocol):
    """May refuse a change of the configs of a topic or a broker, also one that is only validated."""

    def configure(self, configs: Mapping[str, str], /) -> None:
        """Called once, before the broker serves clients. `configs` are the broker's settings as texts."""

    @abstractmethod
    def validate(self, metadata: AlterConfigMetadata, /) -> None:
        """Raise PolicyViolation to refuse the change.

        A ValueError answers INVALID_CONFIG, any other exception UNKNOWN_SERVER_ERROR.
        """

    def close(self) -> None:
        """Called once, when the broker stops."""


MetadataT = TypeVar("MetadataT", CreateTopicMetadata, AlterConfigMetadata)


class Policies:
    """The policies of this broker; None stands for a policy that allows everything."""

    __slots__ = ("_alter_config", "_clock", "_create_topic")

    def __init__(
        self,
        clock: Clock,
        create_topic: CreateTopicPolicy | None = None,
        alter_config: AlterConfigPolicy | None = None,
    ) -> None:
        self._clock = clock
        self._create_topic = create_topic
        self._alter_config = alter_config

    def validate_create_topic(self, metadata: CreateTopicMetadata) -> None:
        """Raises: KafkaError if the policy refuses the topic, or fails."""
        if self._create_topic is not None:
            try:
                self._call(self._create_topic.validate, metadata, metadata.topic, (KafkaError, ConfigError))
            except ConfigError as error:
                raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error

    def validate_alter_config(self, metadata: AlterConfigMetadata) -> None:
        """Raises: KafkaError if the policy refuses the change, or fails."""
        if self._alter_config is not None:
            try:
                answers = (KafkaError, ConfigError, ValueError)
                self._call(self._alter_config.validate, metadata, metadata.resource, answers)
            except (ConfigError, ValueError) as error:
                message = f"Invalid config value for resource {metadata.resource}: {error}"
                raise KafkaError(ErrorCode.INVALID_CONFIG, message) from error

    def _call(
        self,
        validate: Callable[[MetadataT], None],
        metadata: MetadataT,
        subject: object,
        answers: tuple[type[Exception], ...],
    ) -> None:
        """Call the policy. `answers`: the exceptions that refuse the request; any other is a bug of the policy."""
        started_ms = self._clock.monotonic_ms()
        try:
            validate(metadata)
        except answers:
            raise
        except Exception as error:
            # The configs are not logged: they may be secret. The client gets no message, as from Apache Kafka.
            logger.exception("%s failed for %s", validate.__qualname__, subject)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
        finally:
            took_ms = self._clock.monotonic_ms() - started_ms
            if took_ms > SLOW_POLICY_MS:
                logger.warning(
                    "%s took %d ms, and no other request was handled meanwhile: a policy must not wait for a disk or a "
                    "network",
                    *(validate.__qualname__, took_ms),
                )

    def close(self) -> None:
        for policy in (self._create_topic, self._alter_config):
            try:
                if policy is not None:
                    policy.close()
            except Exception:
                logger.exception("Cannot close the policy %s", type(policy).__qualname__)

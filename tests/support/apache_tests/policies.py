"""The policies of Apache's tests in Python. `Classes.java` puts them in the place of the Java classes."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.controller.admin.policies import (
    AlterConfigMetadata,
    AlterConfigPolicy,
    CreateTopicMetadata,
    CreateTopicPolicy,
    PolicyViolation,
)


def require(condition: bool, message: str) -> None:
    """As Scala's `require`, whose error is an IllegalArgumentException."""
    if not condition:
        raise ValueError(message)


class TestedPolicy:
    """What both of them look at."""

    configs: Mapping[str, str]
    closed = False

    def configure(self, configs: Mapping[str, str], /) -> None:
        self.configs = configs

    def require_use(self) -> None:
        require(not self.closed, "Policy should not be closed")
        require(bool(self.configs), "configure should have been called with non empty configs")

    def close(self) -> None:
        self.closed = True


class OfNewTopics(TestedPolicy, CreateTopicPolicy):
    """Apache's CreateTopicsRequestWithPolicyTest.Policy."""

    def validate(self, metadata: CreateTopicMetadata, /) -> None:
        if metadata.topic in ("__consumer_offsets", "__transaction_state"):
            return
        self.require_use()
        if metadata.replicas_assignments is None:
            self.of_numbers(metadata)
            return
        require(metadata.num_partitions is None, "numPartitions should be null")
        require(metadata.replication_factor is None, "replicationFactor should be null")
        for partition, replicas in sorted(metadata.replicas_assignments.items()):
            if len(replicas) < 2:
                raise PolicyViolation(
                    f"Topic partitions should have at least 2 partitions, received {len(replicas)} for partition "
                    f"{partition}"
                )

    def of_numbers(self, metadata: CreateTopicMetadata) -> None:
        partitions = metadata.num_partitions
        if partitions is None or metadata.replication_factor is None:
            raise ValueError("numPartitions and replicationFactor should not be null")
        if partitions < 5:
            raise PolicyViolation(f"Topics should have at least 5 partitions, received {partitions}")
        if partitions <= 10:
            require(not metadata.configs, f"Topic configs should be empty, but it is {metadata.configs}")
        elif int(metadata.configs.get("retention.ms", "5001")) > 5000:
            raise PolicyViolation("RetentionMs should be less than 5000ms if replicationFactor > 5")


class OfConfigs(TestedPolicy, AlterConfigPolicy):
    """Apache's AdminClientWithPoliciesIntegrationTest.Policy."""

    def validate(self, metadata: AlterConfigMetadata, /) -> None:
        self.require_use()
        require(bool(metadata.configs), "request configs should not be empty")
        require(bool(metadata.resource.name), "resource name should not be empty")
        if "min.insync.replicas" in metadata.configs:
            raise PolicyViolation("Min in sync replicas cannot be updated")

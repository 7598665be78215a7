from __future__ import annotations

import json

import pytest

from odradek.broker.tools.admin.configs.config_resources import SOURCES
from odradek.broker.tools.admin.configs.configs import main
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.support.clusters.admin_cluster import AdminCluster, Command, topic

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE = 0, 1


def config(name: str, value: str | None, source: int, **more: bool) -> DescribeConfigsResourceResult:
    synonyms = [DescribeConfigsSynonym(name=name, value=value, source=source)]
    return DescribeConfigsResourceResult(name=name, value=value, config_source=source, synonyms=synonyms, **more)


@pytest.fixture(autouse=True)
def some_configs(cluster: AdminCluster) -> None:
    cluster.has(topic("t", [1]), topic("a", [1]))
    by_type = {
        TOPIC: [config("z", "9", 1), config("retention.ms", "5", 1), config("x", "1", 5)],
        BROKER: [config("own", None, 2, is_sensitive=True), config("default", "3", 3), config("static", "1", 4)],
        LOGGER: [config("kafka", "INFO", 6)],
    }

    def describe(broker_id: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        assert request.include_synonyms
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    error_code=ErrorCode.NONE,
                    error_message=None,
                    resource_name=resource.resource_name,
                    configs=by_type[resource.resource_type],
                )
                for resource in request.resources
            ]
        )

    cluster.on(DescribeConfigsRequest, describe)
    done = AlterConfigsResourceResponse(error_code=ErrorCode.NONE)
    cluster.on(IncrementalAlterConfigsRequest, lambda broker_id, _: IncrementalAlterConfigsResponse(responses=[done]))


def test_what_is_set_for_topics_is_described(command: Command, cluster: AdminCluster) -> None:
    _, lines, _ = command(main, "--describe", "--entity-type", "topics")
    of_topic = [
        "  retention.ms=5 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5}",
        "  z=9 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:z=9}",
    ]
    assert lines == ["Dynamic configs for topic a are:", *of_topic, "Dynamic configs for topic t are:", *of_topic]
    assert len(cluster.requests(DescribeConfigsRequest)) == 1
    _, lines, _ = command(main, "--describe", "--topic", "t", "--all")
    assert (lines[0], lines[2]) == (
        "All configs for topic t are:",
        "  x=1 sensitive=false synonyms={DEFAULT_CONFIG:x=1}",
    )


def test_each_broker_describes_itself(command: Command, cluster: AdminCluster) -> None:
    _, lines, _ = command(main, "--describe", "--entity-type", "brokers")
    assert lines[:2] == [
        "Dynamic configs for broker 1 are:",
        "  own=null sensitive=true synonyms={DYNAMIC_BROKER_CONFIG:own=null}",
    ]
    assert lines[-2:] == [
        "Default configs for brokers in the cluster are:",
        "  default=3 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:default=3}",
    ]
    asked = [
        (broker_id, request.resources[0].resource_name)
        for broker_id, request in cluster.requests(DescribeConfigsRequest)
    ]
    assert asked == [(1, "1"), (2, "2"), (3, "3"), (1, "")]


def test_configs_for_programs(command: Command) -> None:
    (row,) = json.loads("".join(command(main, "--describe", "--broker-logger", "3", "--json")[1]))
    assert row == {
        "entity_type": "broker-loggers",
        "entity_name": "3",
        "name": "kafka",
        "value": "INFO",
        "is_sensitive": False,
        "source": "DYNAMIC_BROKER_LOGGER_CONFIG",
        "synonyms": ["DYNAMIC_BROKER_LOGGER_CONFIG:kafka=INFO"],
    }
    assert len(set(SOURCES.values())) == len(SOURCES) == 8


@pytest.mark.parametrize(
    ("arguments", "broker_id", "kind", "name", "line"),
    [
        (
            ["--topic", "t", "--add-config", "a=[1,2]", "--delete-config", "z"],
            1,
            TOPIC,
            "t",
            "Completed updating config for topic t.",
        ),
        (
            ["--broker", "3", "--add-config", "a=[1,2]", "--delete-config", "own"],
            3,
            BROKER,
            "3",
            "Completed updating config for broker 3.",
        ),
        (
            ["--broker-defaults", "--add-config", "a=[1,2]", "--delete-config", "default"],
            1,
            BROKER,
            "",
            "Completed updating default config for brokers in the cluster.",
        ),
    ],
)
def test_configs_are_set_and_deleted(
    arguments: list[str], broker_id: int, kind: int, name: str, line: str, command: Command, cluster: AdminCluster
) -> None:
    assert command(main, "--alter", *arguments) == (0, [line], "")
    ((asked, request),) = cluster.requests(IncrementalAlterConfigsRequest)
    (resource,) = request.resources
    assert (asked, resource.resource_type, resource.resource_name) == (broker_id, kind, name)
    assert resource.configs == [
        AlterableConfig(name="a", config_operation=SET, value="1,2"),
        AlterableConfig(name=arguments[-1], config_operation=DELETE, value=""),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "t", "--delete-config", "x,nope"], "Invalid config(s): x,nope"),
        (["--broker", "9", "--add-config", "a=1"], "broker 9 is not alive"),
    ],
)
def test_what_is_not_there_is_not_altered(
    arguments: list[str], message: str, command: Command, cluster: AdminCluster
) -> None:
    assert command(main, "--alter", *arguments) == (1, [], f"odradek: {message}\n")
    assert cluster.requests(IncrementalAlterConfigsRequest) == []


def test_a_logger_of_one_client_needs_not_be_described(command: Command, cluster: AdminCluster) -> None:
    name = "kafka.request.logger.orders"
    assert command(main, "--alter", "--broker-logger", "3", "--add-config", f"{name}=DEBUG")[0] == 0
    ((asked, request),) = cluster.requests(IncrementalAlterConfigsRequest)
    assert asked == 3
    assert request.resources[0].configs == [AlterableConfig(name=name, config_operation=SET, value="DEBUG")]


def test_a_refusal_is_an_error(command: Command, cluster: AdminCluster) -> None:
    refused = AlterConfigsResourceResponse(error_code=ErrorCode.INVALID_CONFIG, error_message="too small")
    cluster.on(
        IncrementalAlterConfigsRequest, lambda broker_id, _: IncrementalAlterConfigsResponse(responses=[refused])
    )
    status, _, error = command(main, "--alter", "--topic", "t", "--add-config", "a=1")
    assert (status, error) == (1, "odradek: Error while altering configs of topics t: too small\n")

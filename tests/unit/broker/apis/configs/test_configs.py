"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs: resources, what is shown of a value, what is refused."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from odradek.controller.tree.metadata_tree import SetData
from odradek.controller.znodes import znodes
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode
from odradek.protocol.made_once import FEW
from odradek.protocol.messages.describe_configs import DescribeConfigsResult
from odradek.protocol.topic_partition import TopicPartition
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.wire.requests import build

NONE = ErrorCode.NONE
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS = 2, 4, 8, 16
FROM_TOPIC, FROM_BROKER, FROM_DEFAULT = 1, 2, 5
SET, DELETE, APPEND, SUBTRACT = range(4)
Resource = tuple[int, str]


@pytest.fixture(autouse=True)
def topics(broker: InProcessBroker) -> None:
    if not broker.services.metadata_cache.contains("t"):
        broker.create_topic("t", configs={"retention.ms": "1000"})


def describe(
    broker: InProcessBroker, *resources: Resource, keys: list[str] | None = None, version: int = 4, **fields: bool
) -> list[DescribeConfigsResult]:
    asked = [{"resource_type": kind, "resource_name": name, "configuration_keys": keys} for kind, name in resources]
    request = build(ApiKey.DESCRIBE_CONFIGS, resources=asked, **fields)
    return broker.call(request, version).results  # type: ignore[attr-defined, no-any-return]


def alter(
    broker: InProcessBroker, *resources: Resource, version: int = 2, dry: bool = False, **configs: str | None
) -> list[Response]:
    named = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
    asked = [{"resource_type": kind, "resource_name": name, "configs": named} for kind, name in resources]
    request = build(ApiKey.ALTER_CONFIGS, resources=asked, validate_only=dry)
    return broker.call(request, version).responses  # type: ignore[attr-defined]


def change(
    broker: InProcessBroker, resource: Resource, *changes: tuple[str, int, str | None], dry: bool = False
) -> Response:
    configs = [{"name": name, "config_operation": operation, "value": value} for name, operation, value in changes]
    asked = [{"resource_type": resource[0], "resource_name": resource[1], "configs": configs}]
    request = build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=asked, validate_only=dry)
    (response,) = broker.call(request, 1).responses  # type: ignore[attr-defined]
    return response


def value_of(broker: InProcessBroker, resource: Resource, key: str) -> tuple[str | None, int]:
    """The value and its source."""
    (result,) = describe(broker, resource, keys=[key])
    (config,) = result.configs
    return config.value, config.config_source


# Describe


@pytest.mark.parametrize("version", range(5))
def test_configs_of_a_topic(broker: InProcessBroker, version: int) -> None:
    (result,) = describe(broker, (TOPIC, "t"), version=version)
    assert (result.error_code, result.error_message) == (NONE, "")
    assert (result.resource_type, result.resource_name) == (TOPIC, "t")
    found = {config.name: config for config in result.configs}
    assert found["retention.ms"].value == "1000"
    assert found["retention.ms"].config_source == (FROM_TOPIC if version >= 1 else -1)
    assert not any(config.is_default for config in result.configs), "Apache never says so"
    assert len(found) == len(result.configs) > 25


def test_only_the_keys_that_were_asked_for(broker: InProcessBroker) -> None:
    (result,) = describe(broker, (TOPIC, "t"), keys=["cleanup.policy", "no.such.key"])
    assert [(config.name, config.value) for config in result.configs] == [("cleanup.policy", "delete")]


@pytest.mark.parametrize("keys", [None, []])
def test_no_keys_are_all_keys(broker: InProcessBroker, keys: list[str] | None) -> None:
    assert len(describe(broker, (TOPIC, "t"), keys=keys)[0].configs) > 25


def test_synonyms_and_documentation_if_asked_for(broker: InProcessBroker) -> None:
    ((silent,), (told,)) = (
        result.configs
        for asked in (False, True)
        for result in describe(
            broker, (TOPIC, "t"), keys=["retention.ms"], include_synonyms=asked, include_documentation=asked
        )
    )
    assert (silent.synonyms, silent.documentation) == ([], None)
    assert [(s.name, s.source) for s in told.synonyms][:1] == [("retention.ms", FROM_TOPIC)]
    assert told.documentation


def test_each_resource_has_its_own_answer(broker: InProcessBroker) -> None:
    names = (TOPIC, "none"), (TOPIC, "a/b"), (BROKER, "7"), (BROKER, "x"), (BROKER, " 0 "), (TOPIC, "t")
    results = describe(broker, *names)
    assert [result.error_code for result in results] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        NONE,
    ]
    assert [result.error_message for result in results[2:]] == [
        "Unexpected broker id, expected 0 or empty string, but received 7",
        "Broker id must be an integer, but it is: x",
        "Broker id must be an integer, but it is:  0 ",
        "",
    ]


def test_a_topic_whose_config_cannot_be_read_fails_alone(broker: InProcessBroker) -> None:
    broker.create_topic("unreadable")
    node = SetData(znodes.entity_config_path("topics/unreadable"), b'{"version":1,"config":{"retention.ms":5}}')
    broker.run(broker.services.controller.client.tree.run(node))
    failed, described = describe(broker, (TOPIC, "unreadable"), (TOPIC, "t"))
    assert (failed.error_code, failed.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert described.error_code == NONE
    broker.delete_topic("unreadable")


def test_own_broker(broker: InProcessBroker) -> None:
    (result,) = describe(broker, (BROKER, "0"))
    found = {config.name: config for config in result.configs}
    assert found["log.dirs"].value is not None
    assert found["log.dirs"].read_only
    assert not found["log.retention.ms"].read_only
    secrets = [config for config in result.configs if config.is_sensitive]
    assert secrets
    assert all(config.value is None for config in secrets)


def test_new_advertised_listeners_are_registered_and_in_the_metadata(broker: InProcessBroker) -> None:
    key, controller = "advertised.listeners", broker.services.controller
    before = broker.run(controller.client.broker(0))
    assert before is not None
    listener = before.end_points[0].listener_name

    def is_in_the_metadata(host: str, port: int) -> bool:
        node = broker.services.metadata_cache.snapshot.node(0, listener)
        return node is not None and (node.host, node.port) == (host, port)

    assert change(broker, (BROKER, "0"), (key, SET, f"{listener}://elsewhere:7")).error_code == NONE
    assert broker.settle(lambda: is_in_the_metadata("elsewhere", 7))
    after = broker.run(controller.client.broker(0))
    assert after is not None
    assert after.end_points[0].connection_string == f"{listener}://elsewhere:7"
    for refused in ("NOBODY://elsewhere:7", "PLAINTEXT://0.0.0.0:7", "elsewhere"):
        assert change(broker, (BROKER, "0"), (key, SET, refused)).error_code == ErrorCode.INVALID_REQUEST
    assert change(broker, (BROKER, "0"), (key, DELETE, None)).error_code == NONE
    assert broker.settle(lambda: is_in_the_metadata(before.end_points[0].host, before.end_points[0].port))


def test_unknown_type_refuses_the_request(broker: InProcessBroker) -> None:
    results = describe(broker, (TOPIC, "t"), (1, "t"))
    message = DEFAULT_MESSAGES[ErrorCode.INVALID_REQUEST]
    assert [(result.error_code, result.error_message) for result in results] == [
        (ErrorCode.INVALID_REQUEST, message)
    ] * 2


@pytest.mark.parametrize("resource", [(TOPIC, "none"), (TOPIC, ""), (BROKER, "9"), (CLIENT_METRICS, "c"), (TOPIC, "t")])
def test_one_resource_many_times_has_as_many_equal_results(broker: InProcessBroker, resource: Resource) -> None:
    keys = ["retention.ms"]
    (once,) = describe(broker, resource, keys=keys)
    *many, other = describe(broker, *[resource] * FEW, (TOPIC, "other"), keys=keys)
    assert len(many) == FEW
    assert all(result == once for result in many)
    assert other.resource_name == "other"


def test_a_subscription_of_client_metrics_has_a_name(broker: InProcessBroker) -> None:
    named, unnamed = describe(broker, (CLIENT_METRICS, "c"), (CLIENT_METRICS, ""))
    assert named.error_code == unnamed.error_code == ErrorCode.INVALID_REQUEST
    assert named.error_message == "Config type client-metrics is only supported on KRaft clusters"
    assert unnamed.error_message == "Client metrics subscription name must not be empty"


def test_one_resource_many_times_is_refused_as_often(broker: InProcessBroker) -> None:
    *many, other = alter(broker, *[(TOPIC, "t")] * FEW, (TOPIC, "none"), retention_ms="5")
    assert len(many) == FEW
    twice, _ = alter(broker, *[(TOPIC, "t")] * 2, retention_ms="5")
    assert all(answer == twice for answer in many)
    assert other.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # type: ignore[attr-defined]


def test_same_resource_twice_is_described_twice(broker: InProcessBroker) -> None:
    one, two = describe(broker, (TOPIC, "t"), (TOPIC, "t"), keys=["retention.ms"])
    assert one == two


# Alter


@pytest.mark.parametrize("version", range(3))
def test_alter_replaces_everything(broker: InProcessBroker, version: int) -> None:
    name = f"altered{version}"
    broker.create_topic(name, configs={"retention.ms": "1"})
    (response,) = alter(broker, (TOPIC, name), version=version, segment_bytes="2000000")
    assert (response.error_code, response.error_message, response.resource_name) == (NONE, None, name)
    assert value_of(broker, (TOPIC, name), "segment.bytes") == ("2000000", FROM_TOPIC)
    assert value_of(broker, (TOPIC, name), "retention.ms")[1] != FROM_TOPIC


def test_altered_topic_acts_on_it(broker: InProcessBroker) -> None:
    broker.create_topic("acting")
    alter(broker, (TOPIC, "acting"), cleanup_policy="compact")
    log = broker.services.log_manager.get_log(TopicPartition("acting", 0))
    assert log is not None
    assert broker.settle(lambda: log.config.compact)


@pytest.mark.parametrize(("value", "elects"), [("true", True), ("TRUE", True), ("false", False)])
def test_topic_that_allows_unclean_elections_gets_its_leaders(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, value: str, elects: bool
) -> None:
    elected: list[str] = []
    monkeypatch.setattr(broker.services.controller, "enable_topic_unclean_leader_election", elected.append)
    name = f"unclean-{value}"
    broker.create_topic(name)
    alter(broker, (TOPIC, name), unclean_leader_election_enable=value, retention_ms="4")
    log = broker.services.log_manager.get_log(TopicPartition(name, 0))
    assert log is not None
    assert broker.settle(lambda: log.config.retention_ms == 4)
    assert elected == ([name] if elects else [])


def test_only_validating_changes_nothing(broker: InProcessBroker) -> None:
    assert alter(broker, (TOPIC, "t"), dry=True, retention_ms="5")[0].error_code == NONE
    assert change(broker, (TOPIC, "t"), ("retention.ms", SET, "5"), dry=True).error_code == NONE
    assert value_of(broker, (TOPIC, "t"), "retention.ms") == ("1000", FROM_TOPIC)


@pytest.mark.parametrize(
    ("resource", "configs", "error"),
    [
        ((TOPIC, "none"), {"retention.ms": "5"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((TOPIC, ""), {"retention.ms": "5"}, ErrorCode.INVALID_REQUEST),
        ((TOPIC, "t"), {"retention.ms": "soon"}, ErrorCode.INVALID_CONFIG),
        ((TOPIC, "t"), {"no.such.key": "5"}, ErrorCode.INVALID_CONFIG),
        ((TOPIC, "t"), {"retention.ms": None}, ErrorCode.INVALID_REQUEST),
        ((BROKER, "7"), {"log.retention.ms": "5"}, ErrorCode.INVALID_REQUEST),
        ((BROKER, "0"), {"log.dirs": "/x"}, ErrorCode.INVALID_REQUEST),
        ((BROKER_LOGGER, "0"), {"root": "INFO"}, ErrorCode.INVALID_REQUEST),
        ((99, "t"), {"retention.ms": "5"}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_refused_alterations(
    broker: InProcessBroker, resource: Resource, configs: dict[str, str | None], error: ErrorCode
) -> None:
    (response,) = alter(broker, resource, **configs)
    assert (response.error_code, response.resource_type, response.resource_name) == (error, *resource)
    assert response.error_message


def test_resource_named_twice_is_refused_twice_and_others_are_altered(broker: InProcessBroker) -> None:
    broker.create_topic("alone")
    responses = alter(broker, (TOPIC, "t"), (TOPIC, "alone"), (TOPIC, "t"), retention_ms="77")
    message = "Each resource must appear at most once."
    assert [(r.error_code, r.error_message) for r in responses] == [
        (ErrorCode.INVALID_REQUEST, message),
        (NONE, None),
        (ErrorCode.INVALID_REQUEST, message),
    ]
    assert value_of(broker, (TOPIC, "t"), "retention.ms") == ("1000", FROM_TOPIC)


# Incremental


def test_keys_are_set_deleted_and_lists_changed(broker: InProcessBroker) -> None:
    broker.create_topic("stepwise", configs={"retention.ms": "1"})
    resource = (TOPIC, "stepwise")
    steps = [("retention.ms", DELETE, None), ("cleanup.policy", APPEND, "compact"), ("segment.ms", SET, "99")]
    assert change(broker, resource, *steps).error_code == NONE
    assert value_of(broker, resource, "cleanup.policy") == ("delete,compact", FROM_TOPIC)
    assert value_of(broker, resource, "segment.ms") == ("99", FROM_TOPIC)
    assert value_of(broker, resource, "retention.ms")[1] != FROM_TOPIC
    assert change(broker, resource, ("cleanup.policy", SUBTRACT, "delete")).error_code == NONE
    assert value_of(broker, resource, "cleanup.policy") == ("compact", FROM_TOPIC)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([("retention.ms", APPEND, "5")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "5"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_refused_changes(broker: InProcessBroker, changes: list[tuple[str, int, str | None]], error: ErrorCode) -> None:
    response = change(broker, (TOPIC, "t"), *changes)
    assert response.error_code == error
    assert response.error_message


def test_dynamic_broker_config_is_in_force_and_shown(broker: InProcessBroker) -> None:
    assert change(broker, (BROKER, "0"), ("log.retention.ms", SET, "12345")).error_code == NONE
    config = broker.services.config
    assert broker.settle(lambda: config.text("log.retention.ms") == "12345")
    assert value_of(broker, (BROKER, "0"), "log.retention.ms") == ("12345", FROM_BROKER)
    assert change(broker, (BROKER, "0"), ("log.retention.ms", DELETE, None)).error_code == NONE
    assert broker.settle(lambda: config.text("log.retention.ms") == "-1")


def test_default_for_all_brokers_is_shown_under_the_empty_name(broker: InProcessBroker) -> None:
    assert describe(broker, (BROKER, ""))[0].configs == []
    assert change(broker, (BROKER, ""), ("log.segment.bytes", SET, "54321")).error_code == NONE
    assert broker.settle(lambda: broker.services.config.text("log.segment.bytes") == "54321")
    ((config,),) = [result.configs for result in describe(broker, (BROKER, ""))]
    assert (config.name, config.value) == ("log.segment.bytes", "54321")


# Loggers


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("odradek.test.levels")
    yield logger
    logger.setLevel(logging.NOTSET)


def test_level_of_a_logger(broker: InProcessBroker, logger: logging.Logger) -> None:
    resource = (BROKER_LOGGER, "0")
    assert change(broker, resource, (logger.name, SET, "TRACE")).error_code == NONE
    assert logger.level == logging.DEBUG - 5
    assert value_of(broker, resource, logger.name) == ("TRACE", 6)
    assert change(broker, resource, (logger.name, DELETE, None)).error_code == NONE
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("resource", "changed", "error"),
    [
        ((BROKER_LOGGER, "1"), ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ((BROKER_LOGGER, "x"), ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ((BROKER_LOGGER, "0"), ("root", APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        ((BROKER_LOGGER, "0"), ("root", DELETE, None), ErrorCode.INVALID_REQUEST),
        ((BROKER_LOGGER, "0"), ("root", SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        ((BROKER_LOGGER, "0"), ("no.such.logger", SET, "INFO"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_refused_levels(
    broker: InProcessBroker, resource: Resource, changed: tuple[str, int, str | None], error: ErrorCode
) -> None:
    assert change(broker, resource, changed).error_code == error


@pytest.mark.parametrize(
    ("name", "error"), [("", ErrorCode.INVALID_REQUEST), ("1", ErrorCode.INVALID_REQUEST), ("0", NONE)]
)
def test_loggers_are_those_of_this_broker(broker: InProcessBroker, name: str, error: ErrorCode) -> None:
    (result,) = describe(broker, (BROKER_LOGGER, name))
    assert result.error_code == error
    assert ("root" in {config.name for config in result.configs}) == (error == NONE)


SECRET = "do-not-tell"


@pytest.mark.parametrize("name", ["ssl.key.password", "listener.name.plaintext.ssl.key.password", "no.such.password"])
@pytest.mark.parametrize("resource", [(BROKER, "0"), (BROKER, ""), (BROKER, "7"), (TOPIC, "t")])
def test_no_value_that_may_be_a_secret_is_logged(
    broker: InProcessBroker, resource: Resource, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether it is accepted or refused, whatever the level."""
    with caplog.at_level(1):
        change(broker, resource, (name, SET, SECRET))
        change(broker, resource, (name, SET, SECRET), ("log.roll.ms", SET, "x"))
        change(broker, resource, (name, APPEND, SECRET))
        change(broker, resource, (name, 9, SECRET))
        alter(broker, resource, **{name: SECRET})
        described = describe(broker, resource, include_synonyms=True)
        change(broker, resource, (name, DELETE, None))
    assert SECRET not in caplog.text
    assert SECRET not in repr(described)


def test_a_password_needs_the_secret_to_be_kept(broker: InProcessBroker) -> None:
    name = "listener.name.plaintext.ssl.key.password"
    assert change(broker, (BROKER, "0"), (name, SET, SECRET), dry=True).error_code == NONE
    refused = change(broker, (BROKER, "0"), (name, SET, SECRET))
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert refused.error_message == (
        "Invalid config value for resource ConfigResource(type=BROKER, name='0'): "
        "Password encoder secret not configured"
    )

from __future__ import annotations

import pytest

from odradek.broker.config.config_keys import BROKER_CONFIGS
from odradek.storage.config.config_def import ConfigError

POLICY = "create.topic.policy.class.name"
VOTERS, SERVERS = "controller.quorum.voters", "controller.quorum.bootstrap.servers"


def refusal(name: str, text: str) -> str:
    with pytest.raises(ConfigError) as refused:
        BROKER_CONFIGS.parse(name, text)
    return str(refused.value)


@pytest.mark.parametrize("text", ["", "1@h:2", "1@h:2,2@[::1]:65535", "-1@PLAINTEXT://h:0"])
def test_voters(text: str) -> None:
    BROKER_CONFIGS.parse(VOTERS, text)


@pytest.mark.parametrize("text", ["", "h:2", "h:0,[::1]:65535"])
def test_bootstrap_servers(text: str) -> None:
    BROKER_CONFIGS.parse(SERVERS, text)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (VOTERS, "h:2", f"Invalid configuration value for {VOTERS}. Each entry should be in the form"),
        (VOTERS, "1@h:2,", f"Invalid configuration value for {VOTERS}. Each entry should be in the form"),
        (VOTERS, "1@a@h:2", f"Invalid configuration value for {VOTERS}. Each entry should be in the form"),
        (VOTERS, "x@h:2", "Failed to parse voter ID as an integer from x"),
        (VOTERS, "1 @h:2", "Failed to parse voter ID as an integer from 1 "),
        (VOTERS, "2147483648@h:2", "Failed to parse voter ID as an integer from 2147483648"),
        (VOTERS, "1@h", f"Failed to parse host name from entry 1@h for the configuration {VOTERS}."),
        (VOTERS, "1@h:65536", "port out of range:65536"),
        (SERVERS, "h", f"Failed to parse host name from h for the configuration {SERVERS}."),
        (SERVERS, "h:2,", f"Failed to parse host name from  for the configuration {SERVERS}."),
        (SERVERS, "h:65536", "port out of range:65536"),
    ],
)
def test_what_is_no_address_is_refused(name: str, text: str, message: str) -> None:
    assert refusal(name, text).startswith(message)


@pytest.mark.parametrize("text", ["-2", "0"])
def test_a_pool_has_a_size_or_minus_one(text: str) -> None:
    name = "remote.log.manager.copier.thread.pool.size"
    assert refusal(name, text).endswith("Value can be -1 or greater than 0")
    assert [BROKER_CONFIGS.parse(name, good) for good in ("-1", "1")] == [-1, 1]


@pytest.mark.parametrize("text", ["module:Class", "a.b.Class", "a.b:Outer.Inner"])
def test_paths_that_can_be_of_a_class(text: str) -> None:
    BROKER_CONFIGS.parse(POLICY, text)


@pytest.mark.parametrize("text", ["", "Class", ".Class", "a..Class", "a:", ":Class", "a:b:Class", "a/b.Class", "a b.C"])
def test_texts_that_are_no_path(text: str) -> None:
    assert refusal(POLICY, text) == f"Invalid value {text} for configuration {POLICY}: Class {text} could not be found."

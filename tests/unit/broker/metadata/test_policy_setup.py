from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.metadata.policy_setup import load_policies
from odradek.controller.admin.policies import CreateTopicMetadata, CreateTopicPolicy, PolicyViolation
from odradek.timer.clock import ManualClock

KEY = "create.topic.policy.class.name"


class Refusing(CreateTopicPolicy):
    configs: Mapping[str, str]

    def configure(self, configs: Mapping[str, str], /) -> None:
        self.configs = configs

    def validate(self, metadata: CreateTopicMetadata, /) -> None:
        raise PolicyViolation(f"{metadata.topic} {self.configs['my.own.key']} {self.configs['num.partitions']}")


class Forgetful(CreateTopicPolicy):
    """Has no `validate`."""


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("policies_of_a_test")
    vars(module).update(Refusing=Refusing, Forgetful=Forgetful)
    monkeypatch.setitem(sys.modules, module.__name__, module)


def test_a_policy_gets_the_settings_and_those_that_are_its_own() -> None:
    config = BrokerConfig({KEY: "policies_of_a_test:Refusing", "my.own.key": "mine", "num.partitions": "7"})
    with pytest.raises(PolicyViolation, match=r"^t mine 7$"):
        load_policies(config, ManualClock()).validate_create_topic(CreateTopicMetadata("t", 1, 1, None, {}))


def test_a_policy_that_would_allow_everything_by_mistake_refuses_the_start() -> None:
    with pytest.raises(
        StartupError, match=f"^{KEY}=policies_of_a_test:Forgetful: the object cannot be made: TypeError"
    ):
        load_policies(BrokerConfig({KEY: "policies_of_a_test:Forgetful"}), ManualClock())


def test_a_policy_that_cannot_be_found_refuses_the_start() -> None:
    key = "alter.config.policy.class.name"
    with pytest.raises(StartupError, match=f"^{key}=nowhere:Policy: there is no module nowhere; install it"):
        load_policies(BrokerConfig({key: "nowhere:Policy"}), ManualClock())

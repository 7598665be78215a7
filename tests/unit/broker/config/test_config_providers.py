"""Config providers: what is replaced, what stays as it is, and what is refused. Apache's answers to the same cases are
compared in tests/conformance/daemon/configs/test_config_providers.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.config_providers import EnvVarConfigProvider, Variable, resolve_variables, without_values
from odradek.broker.config.config_sources import gather_settings
from odradek.broker.config.dynamic.dynamic_config import WITH_VARIABLES, DynamicBrokerConfig
from odradek.broker.config.dynamic.dynamic_passwords import Passwords
from odradek.broker.config.dynamic.reconfiguration import check_change
from odradek.broker.machine.startup_error import StartupError
from odradek.controller.admin.config_admin import ConfigChange, ResourceChanges
from odradek.controller.model.config_codes import AlterOperation, ResourceType
from odradek.controller.znodes import znodes
from odradek.storage.config.config_def import ConfigError
from odradek.storage.disk.ports import InlineIoPool
from odradek.storage.manager.log_manager import LogManager
from tests.support.in_process.in_process_broker import in_process_broker
from tests.support.unsafe_ciphers import UnsafeCiphers

KAFKA = "org.apache.kafka.common.config.provider."
CLASSES = {
    "file": f"{KAFKA}FileConfigProvider",
    "directory": f"{KAFKA}DirectoryConfigProvider",
    "env": f"{KAFKA}EnvVarConfigProvider",
}
PROVIDERS = {
    "config.providers": "file,directory,env",
    **{f"config.providers.{name}.class": path for name, path in CLASSES.items()},
}


@pytest.fixture(autouse=True)
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "secrets.properties").write_text("password = open sesame \nempty=\nvariable=${env:TEST_SECRET}\n")
    directory = tmp_path / "mounted"
    directory.mkdir()
    (directory / "password").write_text("line\n")
    (directory / "nested").mkdir()
    (tmp_path / "mounted-too").mkdir()
    (tmp_path / "mounted-too" / "password").write_text("beside")
    monkeypatch.setenv("TEST_SECRET", "from the environment")
    return tmp_path


def resolved(text: str, parameters: Mapping[str, str] = {}) -> str:
    return resolve_variables({**PROVIDERS, **parameters, "key": text})[0]["key"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${file:{dir}/secrets.properties:password}", "open sesame "),
        ("${file:{dir}/secrets.properties:empty}", ""),
        ("${file:{dir}/secrets.properties:missing}", "${file:{dir}/secrets.properties:missing}"),
        ("${file:{dir}/secrets.properties:variable}", "${env:TEST_SECRET}"),
        ("${file:password}", "${file:password}"),
        ("${directory:{dir}/mounted:password}", "line\n"),
        ("${directory:{dir}/mounted:nested}", "${directory:{dir}/mounted:nested}"),
        ("${directory:{dir}/missing:password}", "${directory:{dir}/missing:password}"),
        ("${directory:{dir}/secrets.properties:password}", "${directory:{dir}/secrets.properties:password}"),
        ("${env:TEST_SECRET}", "from the environment"),
        ("${env:NOT_SET}", "${env:NOT_SET}"),
        (
            "<${env:TEST_SECRET}|${env:NOT_SET}|${other:x}|${env:TEST_SECRET}>",
            "<{env}|${env:NOT_SET}|${other:x}|{env}>",
        ),
        ("${TEST_SECRET} $env:TEST_SECRET {env:TEST_SECRET}", "${TEST_SECRET} $env:TEST_SECRET {env:TEST_SECRET}"),
        ("${a${env:TEST_SECRET}|${env:TEST_SECRET", "${a${env:TEST_SECRET}|${env:TEST_SECRET"),
        ("}${env::TEST_SECRET}}${env:TEST_SECRET", "}{env}}${env:TEST_SECRET"),
        ("", ""),
    ],
)
def test_variables_are_replaced_where_there_is_a_value(text: str, expected: str, tmp_path: Path) -> None:
    filled = [
        part.replace("{dir}", str(tmp_path)).replace("{env}", "from the environment") for part in (text, expected)
    ]
    assert resolved(filled[0]) == filled[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${file:{dir}/missing.properties:password}", "Could not read properties from file {dir}/missing.properties"),
        ("${file:{dir}/bad.properties:password}", "Could not read properties from file {dir}/bad.properties"),
        ("${env:/path:TEST_SECRET}", "Path is not supported for EnvVarConfigProvider, invalid value '/path'"),
    ],
)
def test_what_cannot_be_read_is_refused_without_its_content(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.properties").write_bytes(b"password=\xff-secret\n")
    with pytest.raises(ConfigError) as refused:
        resolved(text.replace("{dir}", str(tmp_path)))
    assert str(refused.value) == message.replace("{dir}", str(tmp_path))
    assert refused.value.__context__ is None or refused.value.__suppress_context__


def test_allowed_paths_are_compared_without_dots(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    only = {"config.providers.directory.param.allowed.paths": f"{tmp_path}/./mounted,{tmp_path}"}
    mounted = {"config.providers.directory.param.allowed.paths": f"{tmp_path}/mounted"}
    variable = "${directory:%s:password}"
    assert resolved(variable % f"{tmp_path}/mounted-too", only) == "beside"
    assert resolved(variable % f"{tmp_path}/mounted-too/../mounted", mounted) == "line\n"
    assert not caplog.messages
    for outside in (f"{tmp_path}/mounted-too", f"{tmp_path}/mounted/../mounted-too", str(tmp_path), "mounted"):
        assert resolved(variable % outside, mounted) == variable % outside
        assert f"The path {outside} is not allowed to be accessed" in caplog.messages
    nothing = {"config.providers.directory.param.allowed.paths": ","}
    assert resolved(variable % f"{tmp_path}/mounted", nothing) == variable % f"{tmp_path}/mounted"


@pytest.mark.parametrize(("path", "reason"), [("relative", "is not absolute"), ("/not/there", "does not exist")])
def test_allowed_paths_have_to_be_there(path: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"^Path {path} {reason}$"):
        resolved("x", {"config.providers.file.param.allowed.paths": path})


def test_the_allowlist_matches_whole_names() -> None:
    pattern = "config.providers.env.param.allowlist.pattern"
    assert resolved("${env:TEST_SECRET}", {pattern: "TEST_.*"}) == "from the environment"
    assert resolved("${env:TEST_SECRET}", {pattern: "TEST_"}) == "${env:TEST_SECRET}"
    for invalid in ("(", "(?u)x"):
        with pytest.raises(ConfigError, match=r"allowlist\.pattern"):
            resolved("x", {pattern: invalid})


def test_the_allowlist_has_the_classes_of_ascii() -> None:
    provider = EnvVarConfigProvider({"AÄ": "secret"})
    provider.configure({"allowlist.pattern": r"\w+"})
    assert provider.get("", frozenset({"AÄ"})) == {}


@pytest.mark.parametrize("path", [f"{KAFKA}VaultConfigProvider", "not a class"])
def test_a_class_of_java_is_refused(path: str) -> None:
    with pytest.raises(ConfigError) as refused:
        resolve_variables({"config.providers": "vault", "config.providers.vault.class": path})
    assert str(refused.value) == (
        f"Invalid value {path} for configuration config.providers.vault.class: "
        "Could not load config provider class or one of its dependencies"
    )


class OwnProvider:
    """A provider of an operator."""

    def configure(self, configs: Mapping[str, str]) -> None:
        self._prefix = configs["prefix"]

    def get(self, path: str, keys: frozenset[str]) -> Mapping[str, str]:
        return {key: f"{self._prefix}{path}/{key}" for key in keys}


def test_a_python_class_is_a_provider() -> None:
    settings = {
        "config.providers": "own",
        "config.providers.own.class": f"{__name__}:OwnProvider",
        "config.providers.own.param.prefix": "vault:",
        "key": "${own:a/b:c}",
    }
    assert resolve_variables(settings)[0]["key"] == "vault:a/b/c"
    with pytest.raises(StartupError, match="there is no module"):
        resolve_variables({**settings, "config.providers.own.class": "package_that_is_not_there:Provider"})


def test_a_provider_without_a_class_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    settings = {**PROVIDERS, "config.providers": "file, env", "key": "${env:TEST_SECRET}"}
    assert resolve_variables(settings)[0]["key"] == "${env:TEST_SECRET}"
    assert "config.providers names ' env', but config.providers. env.class is not set" in caplog.text


def test_all_static_settings_are_resolved_and_values_stay_out_of_errors_and_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "server.properties"
    file.write_text(
        "config.providers=file\nssl.key.password=${env:TEST_SECRET}\n"
        f"config.providers.file.class={CLASSES['file']}\nnum.io.threads=${{file:{tmp_path}/secrets.properties:password}}"
    )
    settings = gather_settings(
        file=str(file),
        overrides=["config.providers=file,env"],
        environment={"KAFKA_CONFIG_PROVIDERS_ENV_CLASS": CLASSES["env"]},
    )
    assert settings.texts["ssl.key.password"] == "from the environment"
    assert "sesame" not in repr(settings.variables)
    with pytest.raises(ConfigError, match="open sesame") as refused:
        BrokerConfig(settings.texts)
    shown = str(settings.without_values(refused.value))
    assert f"Invalid value ${{file:{tmp_path}/secrets.properties:password}} for configuration num.io.threads" in shown
    assert "sesame" not in shown + caplog.text
    config = BrokerConfig({**settings.texts, "num.io.threads": "1"})
    assert config.unknown_keys == []


def test_an_element_of_a_list_is_hidden_too() -> None:
    variables = [Variable("${env:LIST}", "SECRET://h:1, OTHER://h:2")]
    assert without_values("Invalid value OTHER://h:2 for", variables) == "Invalid value ${env:LIST} for"
    assert without_values("Invalid value 1 of 10", [Variable("${env:N}", "1")]) == "Invalid value ${env:N} of 10"


def test_a_request_neither_defines_nor_uses_a_provider(caplog: pytest.LogCaptureFixture) -> None:
    config = BrokerConfig({**PROVIDERS, "broker.id": "1"})
    dynamic = DynamicBrokerConfig(config, LogManager.__new__(LogManager), Passwords(config, InlineIoPool()))
    for name in ("config.providers", "config.providers.file.class"):
        with pytest.raises(ConfigError, match="Cannot update these configs dynamically"):
            check_change({name: "file"}, per_broker=True)
    with_variable = {"listener.name.plaintext.ssl.keystore.location": "${file:/etc/passwd:root}"}
    with pytest.raises(ConfigError, match=WITH_VARIABLES):
        dynamic.validate_change(with_variable, per_broker=True)
    assert dynamic.usable({**with_variable, "config.providers": "x"}, per_broker=True) == {}
    assert WITH_VARIABLES in caplog.text
    literal = {"listener.name.plaintext.ssl.keystore.location": "${vault:/a:b}"}
    assert dynamic.usable(literal, per_broker=True) == literal
    stored = {"config.providers": "vault", "config.providers.vault.class": "V"}
    assert dynamic.usable({**literal, **stored}, per_broker=True) == {}


def test_a_change_keeps_the_variables_of_config_providers_that_it_does_not_name(tmp_path: Path) -> None:
    """An Apache broker may have stored them, and uses them."""
    kept = {"listener.name.x.ssl.keystore.location": "${file:/a:b}"}
    with in_process_broker(tmp_path / "data", PROVIDERS) as broker:
        admin, client = broker.services.config_admin, broker.services.controller.client

        def stored_after(
            alter: Callable[..., Coroutine[object, object, Sequence[object]]], *changes: ConfigChange
        ) -> dict[str, str]:
            resources = [ResourceChanges(ResourceType.BROKER, "0", changes)]
            assert broker.run(alter(resources, validate_only=False)) == [None]
            return broker.run(client.entity_config("brokers/0"))

        stored = {**kept, "log.cleaner.threads": "${env:A}", "log.roll.ms": "1"}
        broker.run(client.create_recursive("/config/brokers/0", znodes.encode_entity_config(stored)))
        changes = ConfigChange("log.roll.ms", "2"), ConfigChange("log.cleaner.threads", None, AlterOperation.DELETE)
        assert stored_after(admin.incremental_alter_configs, *changes) == {**kept, "log.roll.ms": "2"}
        assert stored_after(admin.alter_configs, changes[0]) == {"log.roll.ms": "2"}, "it replaces all there is"


def test_providers_that_are_only_stored_are_known() -> None:
    config = BrokerConfig({"broker.id": "1"})
    dynamic = DynamicBrokerConfig(config, LogManager.__new__(LogManager), Passwords(config, InlineIoPool()))
    kept = {"config.providers": "env", "config.providers.env.class": CLASSES["env"], "log.cleaner.threads": "${env:N}"}
    assert asyncio.run(dynamic.of_config_providers({**kept, "log.roll.ms": "5"})) == kept
    assert dynamic.usable({**kept, "log.roll.ms": "5"}, per_broker=True) == {"log.roll.ms": "5"}


def test_what_defines_or_uses_a_provider_is_told_as_it_is_stored() -> None:
    config = BrokerConfig({**PROVIDERS, "broker.id": "1", "password.encoder.secret": "s"})
    passwords = Passwords(config, InlineIoPool(), UnsafeCiphers())
    dynamic = DynamicBrokerConfig(config, LogManager.__new__(LogManager), passwords)
    key = "listener.name.x.ssl.keystore."
    kept = asyncio.run(passwords.encoded({f"{key}password": "${env:A}"}))
    kept |= {f"{key}location": "${file:/a:b}", "config.providers.v.class": "V"}
    others = asyncio.run(passwords.encoded({f"{key}key.password": "word", "log.roll.ms": "5", "a": "${vault:b}"}))
    assert asyncio.run(dynamic.of_config_providers(kept | others)) == kept

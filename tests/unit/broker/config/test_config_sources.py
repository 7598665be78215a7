from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.config.config_sources import gather_settings
from odradek.broker.machine.startup_error import StartupError


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "server.properties"
    path.write_text("broker.id=1\nlog.dirs=/file\nnum.partitions=3\n")
    return str(path)


def test_override_beats_environment_beats_file(file: str) -> None:
    settings = gather_settings(
        file=file,
        overrides=["broker.id=3", "broker.id=4"],
        environment={"KAFKA_BROKER_ID": "2", "KAFKA_LOG_DIRS": "/env"},
    )
    assert settings.texts == {"broker.id": "4", "log.dirs": "/env", "num.partitions": "3"}
    assert settings.origins == {
        "broker.id": "--override",
        "log.dirs": "environment variable KAFKA_LOG_DIRS",
        "num.partitions": file,
    }


def test_environment_finds_keys_by_name() -> None:
    settings = gather_settings(
        file=None,
        overrides=[],
        environment={
            "KAFKA_ZOOKEEPER_CLIENTCNXNSOCKET": "x",
            "KAFKA_LISTENER_NAME_EXTERNAL_SSL_KEY_PASSWORD": "y",
            "KAFKA_LISTENER_NAME_SASL__SSL_SCRAM___SHA___512_SASL_JAAS_CONFIG": "z",
            "PATH": "/bin",
        },
    )
    assert settings.texts == {
        "zookeeper.clientCnxnSocket": "x",
        "listener.name.external.ssl.key.password": "y",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": "z",
    }


def test_a_variable_is_a_setting_too_if_its_key_is_in_no_table() -> None:
    """A file may have such a key as well: classes that the operator names read it."""
    environment = {
        "KAFKA_SUPER_USERS": "User:root",
        "KAFKA_ALLOW_EVERYONE_IF_NO_ACL_FOUND": "true",
        "KAFKA_AUTHORIZER_ZOOKEEPER_SSL_CLIENT_ENABLE": "true",
        "KAFKA_NIGHT_BEGINS__AT": "22:00",
        "KAFKA_NIGHT___ONLY": "yes",
    }
    settings = gather_settings(file=None, overrides=[], environment=environment)
    assert settings.texts == {
        "super.users": "User:root",
        "allow.everyone.if.no.acl.found": "true",
        "authorizer.zookeeper.ssl.client.enable": "true",
        "night.begins_at": "22:00",
        "night-only": "yes",
    }
    assert settings.origins["super.users"] == "environment variable KAFKA_SUPER_USERS"


def test_variables_of_apaches_scripts_and_images_are_no_settings() -> None:
    opts = ("", "HEAP_", "LOG4J_", "LOG4J_CMD_", "JMX_", "GC_LOG_", "JVM_PERFORMANCE_")
    others = ("VERSION", "HOME", "DEBUG", "MODE", "CLUSTER_ID", "JMX_PORT", "JMX_HOSTNAME")
    logs = ("LOG4J_LOGGERS", "LOG4J_ROOT_LOGLEVEL", "TOOLS_LOG4J_LOGLEVEL")
    names = (*(f"{name}OPTS" for name in opts), *others, *logs)
    environment = {f"KAFKA_{name}": "x" for name in names}
    assert gather_settings(file=None, overrides=[], environment=environment).texts == {}


def test_value_of_an_override_may_hold_anything() -> None:
    settings = gather_settings(file=None, overrides=["listeners=A://:1,B://:2", "x=a=b", "y="], environment={})
    assert settings.texts == {"listeners": "A://:1,B://:2", "x": "a=b", "y": ""}


@pytest.mark.parametrize("override", ["broker.id", "=1", ""])
def test_override_without_a_key_and_a_value_is_refused(override: str) -> None:
    with pytest.raises(StartupError, match="expected key=value"):
        gather_settings(file=None, overrides=[override], environment={})


def test_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="No such file"):
        gather_settings(file=str(tmp_path / "missing"), overrides=[], environment={})
    broken = tmp_path / "broken"
    broken.write_bytes(b"a=\\u12")
    with pytest.raises(StartupError, match="Malformed"):
        gather_settings(file=str(broken), overrides=[], environment={})


def test_an_override_that_is_none_is_not_quoted() -> None:
    """It may hold a secret."""
    with pytest.raises(StartupError) as refused:
        gather_settings(file=None, overrides=["ssl.key.password:secret"], environment={})
    assert "ssl.key.password" in str(refused.value)
    assert "secret" not in str(refused.value)

"""Validators for broker keys only."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from odradek.protocol.java_split import java_split
from odradek.storage.config.config_def import ConfigError, ConfigValue, parse_integer

PORT_MAX: Final = 65535

_HOST_AND_PORT: Final = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)", re.ASCII)


class NonNull:
    """A value must be set."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if value is None:
            raise ConfigError.of_value(name, None, "entry must be non null")

    def __str__(self) -> str:
        return "non-null string"


class MinusOneOrAtLeast(NamedTuple):
    """A size for which -1 means that another key decides."""

    low: int

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, int) or (value != -1 and value < self.low):
            raise ConfigError.of_value(name, value, f"Value can be -1 or greater than {self.low - 1}")

    def __str__(self) -> str:
        return f"-1 or [{self.low},...]"


class KafkaRelease:
    """A release of Apache Kafka whose APIs are known; or nothing."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if isinstance(value, str) and value:
            from odradek.protocol.older_releases import release_of

            try:
                release_of(value)
            except ValueError as error:
                raise ConfigError.of_value(name, value, str(error)) from None

    def __str__(self) -> str:
        return "a release from 0.10.2 to 3.9"


class HostAndPort:
    """`host:port`, or a port alone; or nothing."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if isinstance(value, str) and value:
            host_and_port(name, value)

    def __str__(self) -> str:
        return "host:port or port"


def host_and_port(name: str, text: str) -> tuple[str, int]:
    """The host and port of a setting; 127.0.0.1 for a port alone. Raises: ConfigError."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else "127.0.0.1"
    number = parse_integer(port)
    if not host or number is None or not 0 <= number <= PORT_MAX:
        raise ConfigError.of_value(name, text, "Value must be host:port or a port")
    return host, number


class QuorumVoters:
    """`id@host:port` each. Kafka: QuorumConfig.ControllerQuorumVotersValidator."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        for entry in value if isinstance(value, list) else ():
            self._check(name, entry)

    def _check(self, name: str, entry: str) -> None:
        form = "Each entry should be in the form `{id}@{host}:{port}`."
        parts = java_split(entry, "@")
        if len(parts) != 2:
            raise ConfigError(f"Invalid configuration value for {name}. {form}")
        voter_id = parse_integer(parts[0])
        if voter_id is None or not -(2**31) <= voter_id < 2**31:
            raise ConfigError(f"Failed to parse voter ID as an integer from {parts[0]}")
        match = _HOST_AND_PORT.fullmatch(parts[1])
        if match is None:
            raise ConfigError(f"Failed to parse host name from entry {entry} for the configuration {name}. {form}")
        _check_port(match[2])

    def __str__(self) -> str:
        return "non-empty list"


class QuorumBootstrapServers:
    """`host:port` each. Kafka: QuorumConfig.ControllerQuorumBootstrapServersValidator."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        for entry in value if isinstance(value, list) else ():
            match = _HOST_AND_PORT.fullmatch(entry)
            if match is None:
                raise ConfigError(
                    f"Failed to parse host name from {entry} for the configuration {name}. "
                    'Each entry should be in the form "{host}:{port}"'
                )
            _check_port(match[2])

    def __str__(self) -> str:
        return "non-empty list"


class PythonClassPath:
    """The import path of a Python class. Checks its form, and imports nothing."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if isinstance(value, str) and split_class_path(value) is None:
            raise ConfigError.of_value(name, value, f"Class {value} could not be found.")

    def __str__(self) -> str:
        return "package.module:Class"


def split_class_path(path: str) -> tuple[str, str] | None:
    """Module and class of `package.module:Class` or `package.module.Class`; None for any other text."""
    module_name, colon, class_name = path.partition(":")
    if not colon:
        module_name, _, class_name = path.rpartition(".")
    names = [*module_name.split("."), *class_name.split(".")]
    return (module_name, class_name) if all(map(str.isidentifier, names)) else None


def _check_port(text: str) -> None:
    port = parse_integer(text)
    if port is None or port > PORT_MAX:
        raise ConfigError(f"port out of range:{text}")

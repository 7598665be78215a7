"""Config providers: replace the variables `${provider:[path:]key}` in the static settings by values kept elsewhere.

`config.providers` names providers, `config.providers.<name>.class` gives the class of each, and
`config.providers.<name>.param.<parameter>` configures it. The class is one of Kafka's three, or the import path of a
Python class with the methods of `ConfigProvider`. A variable of an unknown provider or key stays in the text as it is.

Only static settings are resolved (file, environment, command line): a provider reads files of the broker's machine, so
a request must neither define one nor use one.

Kafka: ConfigTransformer, AbstractConfig.resolveConfigVariables, FileConfigProvider, DirectoryConfigProvider,
EnvVarConfigProvider, AllowedPaths.
"""

from __future__ import annotations

import logging
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final, NamedTuple, Protocol

from odradek.broker.config.config_keys import CONFIG_PROVIDERS
from odradek.broker.config.keys.validators import split_class_path
from odradek.broker.config.python_class import new_instance
from odradek.protocol.expressions import compile_expression
from odradek.protocol.java_split import java_split, java_trim
from odradek.storage.config.config_def import ConfigError
from odradek.storage.disk.properties_file import parse_properties

_PACKAGE: Final = "org.apache.kafka.common.config.provider."

logger = logging.getLogger(__name__)


class ConfigProvider(Protocol):
    """Kafka: ConfigProvider."""

    @abstractmethod
    def configure(self, configs: Mapping[str, str], /) -> None:
        """Called once, with the parameters of the provider."""

    @abstractmethod
    def get(self, path: str, keys: frozenset[str], /) -> Mapping[str, str]:
        """The values of `keys` at `path` (empty: the variable has none). Keys without a value are left out."""


class FileConfigProvider:
    """`${file:/path/of.properties:key}`: the value of a key in a properties file."""

    def __init__(self) -> None:
        self._allowed_paths: AllowedPaths | None = None

    def configure(self, configs: Mapping[str, str]) -> None:
        self._allowed_paths = AllowedPaths.parse(configs.get("allowed.paths"))

    def get(self, path: str, keys: frozenset[str]) -> Mapping[str, str]:
        file = _allowed(self._allowed_paths, path)
        if file is None:
            return {}
        try:
            with open(file, encoding="utf-8") as properties:
                found = parse_properties(properties.read())
        except (OSError, ValueError):  # without its cause: a decoding error quotes bytes of the file
            raise ConfigError(f"Could not read properties from file {path}") from None
        return {key: found[key] for key in keys if key in found}


class DirectoryConfigProvider:
    """`${directory:/path:file}`: the whole content of a file in a directory, as Kubernetes mounts secrets."""

    def __init__(self) -> None:
        self._allowed_paths: AllowedPaths | None = None

    def configure(self, configs: Mapping[str, str]) -> None:
        self._allowed_paths = AllowedPaths.parse(configs.get("allowed.paths"))

    def get(self, path: str, keys: frozenset[str]) -> Mapping[str, str]:
        directory = _allowed(self._allowed_paths, path)
        if directory is None:
            return {}
        if not os.path.isdir(directory):
            logger.warning("The path %s is not a directory", path)
            return {}
        try:
            names = os.listdir(directory)
        except OSError as error:
            raise ConfigError(f"Could not list directory {directory}: {error.strerror}") from None
        files = {name: os.path.join(directory, name) for name in names if name in keys}
        return {name: _content(file) for name, file in files.items() if os.path.isfile(file)}


class EnvVarConfigProvider:
    """`${env:NAME}`: a variable of the environment."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment
        self._allowed = re.compile(".*")

    def configure(self, configs: Mapping[str, str]) -> None:
        pattern = configs.get("allowlist.pattern")
        if pattern is None:
            logger.info("No pattern for environment variables provided. Using default pattern '(.*)'.")
            return
        try:
            self._allowed = compile_expression(pattern)
        except ValueError as error:
            raise ConfigError.of_value("allowlist.pattern", pattern, str(error)) from None

    def get(self, path: str, keys: frozenset[str]) -> Mapping[str, str]:
        if path:
            raise ConfigError(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'")
        return {
            key: self._environment[key] for key in keys if key in self._environment and self._allowed.fullmatch(key)
        }


class AllowedPaths:
    """Directories and files that a provider may read: `allowed.paths`, compared as text, without following links."""

    def __init__(self, paths: Iterable[PurePosixPath]) -> None:
        self._paths = tuple(paths)

    @classmethod
    def parse(cls, text: str | None) -> AllowedPaths | None:
        """None if every path is allowed. Raises ConfigError for a path that is relative or does not exist."""
        if not text:
            return None
        paths = [_normalized(path) for path in java_split(text)]
        for path in paths:
            if not path.startswith("/"):
                raise ConfigError(f"Path {path} is not absolute")
            if not os.path.exists(path):
                raise ConfigError(f"Path {path} does not exist")
        return cls(map(PurePosixPath, paths))

    def find(self, path: str) -> str | None:
        """The path without `.` and `..`; None if it is not allowed."""
        normalized = _normalized(path)
        return normalized if any(map(PurePosixPath(normalized).is_relative_to, self._paths)) else None


class Variable(NamedTuple):
    """A variable that was replaced: its text in the settings, and its value, which may be a secret."""

    text: str
    value: str

    def __repr__(self) -> str:
        return self.text


class _Reference(NamedTuple):
    """`${provider:path:key}` or `${provider:key}` in the text of a value."""

    start: int
    end: int
    provider: str
    path: str
    key: str

    @property
    def place(self) -> tuple[str, str]:
        return self.provider, self.path


def _references(text: str) -> Iterator[_Reference]:
    """The variables in the order of the text, in a time that grows with its length: clients send texts, too.

    A variable ends with the first `}` after its `${`. Kafka: ConfigTransformer.DEFAULT_PATTERN.
    """
    at = 0
    while (close := text.find("}", at)) >= 0:
        start = text.find("${", at, close)
        provider, colon, rest = text[start + 2 : close].partition(":") if start >= 0 else ("", "", "")
        at = close + 1
        if colon:
            path, second_colon, key = rest.partition(":")
            yield (
                _Reference(start, at, provider, path, key)
                if second_colon
                else _Reference(start, at, provider, "", rest)
            )


def resolve_variables(settings: Mapping[str, str]) -> tuple[dict[str, str], list[Variable]]:
    """The settings with their variables replaced, and the variables that were replaced.

    Raises: ConfigError if a provider cannot be made or cannot read a file; StartupError if a Python class cannot be
    loaded.
    """
    providers = _providers(settings)
    wanted: dict[tuple[str, str], set[str]] = {}
    for text in settings.values():
        for reference in _references(text):
            if reference.provider in providers:
                wanted.setdefault(reference.place, set()).add(reference.key)
    found = {
        (provider, path): providers[provider].get(path, frozenset(keys)) for (provider, path), keys in wanted.items()
    }  # each file is read once
    replaced: list[Variable] = []

    def resolved(text: str) -> str:
        parts: list[str] = []
        at = 0
        for reference in _references(text):
            value = found.get(reference.place, {}).get(reference.key)
            if value is not None:
                replaced.append(Variable(text[reference.start : reference.end], value))
                parts += text[at : reference.start], value
                at = reference.end
        return "".join((*parts, text[at:]))

    return {name: resolved(text) for name, text in settings.items()}, replaced


def without_values(message: str, variables: Iterable[Variable]) -> str:
    """The message with the texts of variables in the place of their values."""
    for variable in sorted(variables, key=lambda variable: -len(variable.value)):
        for part in (variable.value, *map(java_trim, variable.value.split(","))):
            if part:
                shown = variable.text.replace("\\", r"\\")
                message = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", shown, message)
    return message


def names_with_variables(configs: Mapping[str, str], settings: Mapping[str, str]) -> list[str]:
    """The keys of `configs` whose value has a variable of a provider that `settings` define. No class is loaded."""
    names = set(_classes(settings))
    if not names:
        return []
    return [
        name for name, text in configs.items() if any(reference.provider in names for reference in _references(text))
    ]


def _classes(settings: Mapping[str, str]) -> dict[str, str]:
    """The class of each provider; a provider without a class is ignored, as in Kafka."""
    names = settings.get(CONFIG_PROVIDERS, "")
    classes = {name: settings.get(f"{CONFIG_PROVIDERS}.{name}.class") for name in names.split(",") if name}
    return {name: path for name, path in classes.items() if path is not None}


def _providers(settings: Mapping[str, str]) -> dict[str, ConfigProvider]:
    classes = _classes(settings)
    for name in settings.get(CONFIG_PROVIDERS, "").split(","):
        if name and name not in classes:
            logger.warning(
                "%s names '%s', but %s.%s.class is not set: its variables are not replaced.",
                CONFIG_PROVIDERS,
                name,
                CONFIG_PROVIDERS,
                name,
            )
    return {name: _provider(name, path, settings) for name, path in classes.items()}


_KAFKA_CLASSES: Final[Mapping[str, Callable[[], ConfigProvider]]] = {
    f"{_PACKAGE}FileConfigProvider": FileConfigProvider,
    f"{_PACKAGE}DirectoryConfigProvider": DirectoryConfigProvider,
    f"{_PACKAGE}EnvVarConfigProvider": EnvVarConfigProvider,
}


def _provider(name: str, path: str, settings: Mapping[str, str]) -> ConfigProvider:
    prefix = f"{CONFIG_PROVIDERS}.{name}.param."
    parameters = {key.removeprefix(prefix): text for key, text in settings.items() if key.startswith(prefix)}
    key = f"{CONFIG_PROVIDERS}.{name}.class"
    kafka_class = _KAFKA_CLASSES.get(path)
    if kafka_class is not None:
        provider = kafka_class()
        provider.configure(parameters)
        return provider
    if path.startswith("org.apache.") or split_class_path(path) is None:
        raise ConfigError.of_value(key, path, "Could not load config provider class or one of its dependencies")
    return new_instance(key, path, ConfigProvider, parameters)


def _allowed(allowed_paths: AllowedPaths | None, path: str) -> str | None:
    """The path that may be read; None for an empty one, and for one that is not allowed, which is logged."""
    if not path or allowed_paths is None:
        return path or None
    found = allowed_paths.find(path)
    if found is None:
        logger.warning("The path %s is not allowed to be accessed", path)
    return found


def _normalized(path: str) -> str:
    """Java's Path.normalize: one slash at the beginning, and nothing in the place of a single dot."""
    normal = os.path.normpath(path)
    if normal == ".":
        return ""
    return "/" + normal.lstrip("/") if normal.startswith("/") else normal


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            return file.read()
    except OSError:
        raise ConfigError(f"Could not read file {path} for property {os.path.basename(path)}") from None

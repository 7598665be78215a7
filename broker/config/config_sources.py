"""Sources of the static settings: `--override k=v`, the environment, the file; the first that has a key counts.

A variable of the environment is `KAFKA_` and the key's name in capitals with `_` for `.`, as in the container images of
Apache Kafka: `KAFKA_LOG_DIRS`. Variables are looked up by the names of all keys. In any other name, as that of a
listener or of a key for a class of the operator, two `_` stand for one, and three for `-`:
`KAFKA_LISTENER_NAME_SASL__SSL_SCRAM___SHA___512_SASL_JAAS_CONFIG`. A key that is not known is treated as in a file:
there is a warning, and the operator's classes get it. Variables of Apache Kafka's scripts and images are no settings.

Then the variables of config providers are replaced (`config_providers.py`).

Kafka: KafkaDockerWrapper.getServerConfigsFromEnv.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS
from odradek.broker.machine.startup_error import StartupError
from odradek.storage.config.config_def import ConfigError
from odradek.storage.disk.properties_file import read_properties

if TYPE_CHECKING:
    from odradek.broker.config.config_providers import Variable

ENVIRONMENT_PREFIX: Final = "KAFKA_"

_NOT_SETTINGS: Final = (
    "KAFKA_CLUSTER_ID",
    "KAFKA_DEBUG",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_HEAP_OPTS",
    "KAFKA_HOME",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_JMX_OPTS",
    "KAFKA_JMX_PORT",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_LOG4J_CMD_OPTS",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_MODE",
    "KAFKA_OPTS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_VERSION",
)
"""Variables of Apache Kafka's scripts and images, which configure the JVM."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Texts by key, the origin of each, and the variables that were replaced.

    The repr has no texts: some are secrets.
    """

    texts: dict[str, str] = field(default_factory=dict, repr=False)
    origins: dict[str, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)

    def add(self, name: str, text: str, origin: str) -> None:
        if name not in self.texts:
            self.texts[name] = text
            self.origins[name] = origin

    def resolve_variables(self) -> None:
        """Replace the variables of config providers. Raises: ConfigError, StartupError."""
        if "config.providers" in self.texts:
            from odradek.broker.config.config_providers import resolve_variables

            texts, variables = resolve_variables(self.texts)
            self.texts.update(texts)
            self.variables.extend(variables)

    def without_values(self, error: ConfigError) -> ConfigError:
        """The error with the texts of variables in the place of their values, which may be secrets."""
        if not self.variables:
            return error
        from odradek.broker.config.config_providers import without_values

        return ConfigError(without_values(str(error), self.variables))


def gather_settings(*, file: str | None, overrides: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """All static settings by precedence.

    Raises StartupError for a file or an override that cannot be read, ConfigError for a config provider that fails.
    """
    settings = Settings()
    for name, text in dict(map(_parse_override, overrides)).items():
        settings.add(name, text, "--override")
    _add_environment(settings, environment)
    if file is not None:
        for name, text in _read(file).items():
            settings.add(name, text, file)
    settings.resolve_variables()
    return settings


def _parse_override(override: str) -> tuple[str, str]:
    name, equals, text = override.partition("=")
    if not equals or not name.strip():
        key = name.strip().split(":")[0]  # the rest may be a secret
        raise StartupError(f"--override {key}: expected key=value")
    return name.strip(), text


def _add_environment(settings: Settings, environment: Mapping[str, str]) -> None:
    by_variable = {ENVIRONMENT_PREFIX + _as_variable(name): name for name in BROKER_CONFIG_KEYS}
    for variable, text in sorted(environment.items()):
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in _NOT_SETTINGS:
            continue
        name = by_variable.get(variable) or _as_key(variable)
        settings.add(name, text, f"environment variable {variable}")


def _as_key(variable: str) -> str:
    words = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", ".")
    return words.replace("...", "-").replace("..", "_")


def _as_variable(name: str) -> str:
    return name.upper().replace(".", "_")


def _read(file: str) -> dict[str, str]:
    try:
        return read_properties(file)
    except OSError as error:
        raise StartupError(f"Cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise StartupError(f"Cannot read {file}: {error}") from error

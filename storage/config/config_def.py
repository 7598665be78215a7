"""Configuration definitions: name, type, default, validator and documentation of every key, in one table.

Topic configs (`storage/config/log_config.py`) and broker configs (`broker/config/broker_config.py`) use it: the parser,
DescribeConfigs and the configuration page read the table. It parses texts into typed values; an invalid value raises
`ConfigError` with Kafka's message. Nothing is loaded here: the only accepted class name of a key is its default, unless
a validator decides.

Kafka: ConfigDef, ConfigException.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from odradek.protocol.java_split import java_trim

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HIDDEN: Final = "[hidden]"
_BLANKS: Final = " \t\n\v\f\r"
# Possessive quantifiers (`++`): clients send these texts, and an expression that tries again with fewer digits takes a
# time that grows with the square of their length.
_INTEGER = re.compile(r"([+-]?)(?=[0-9])0*+([0-9]{0,19})", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|([0-9]++\.?[0-9]*+|\.[0-9]++)([eE][+-]?[0-9]++)?[fFdD]?)", re.ASCII)


class ConfigError(Exception):
    """An unknown key or an invalid value; the message is for the user."""

    @classmethod
    def of_value(cls, name: str, value: ConfigValue, reason: str | None = None) -> ConfigError:
        tail = "" if reason is None else f": {reason}"
        return cls(f"Invalid value {shown(value)} for configuration {name}{tail}")


class ConfigType(IntEnum):
    """The type ids of DescribeConfigs v3 and later."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Password:
    """A secret, which is always printed as `[hidden]`."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


ConfigValue: TypeAlias = "bool | int | float | str | list[str] | Password | None"

_BOUNDS = {
    ConfigType.INT: (-(2**31), 2**31 - 1),
    ConfigType.SHORT: (-(2**15), 2**15 - 1),
    ConfigType.LONG: (-(2**63), 2**63 - 1),
}


def shown(value: ConfigValue) -> str:
    """The value as Java prints it in error messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(value) + "]"
    return _shown_double(value) if isinstance(value, float) else str(value)


def _shown_double(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal

    digits, exponent = f"{Decimal(repr(value)).normalize():e}".split("e")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def to_text(value: ConfigValue) -> str | None:
    """The value as text in a properties file; None for null. Kafka: ConfigDef.convertToString."""
    if value is None:
        return None
    if isinstance(value, list):
        return ",".join(value)
    return value.value if isinstance(value, Password) else shown(value)


def parse_integer(text: str) -> int | None:
    """The number that Java parses from a text; None for any other text, and for more than 19 digits.

    `int` alone raises ValueError for a text of thousands of digits.
    """
    match = _INTEGER.fullmatch(text)
    return None if match is None else int(match[1] + (match[2] or "0"))


def _integer_of(config_type: ConfigType, text: str) -> int | None:
    low, high = _BOUNDS[config_type]
    number = parse_integer(text)
    return number if number is not None and low <= number <= high else None


def parse_int32(text: str) -> int | None:
    """The number that Java's `Integer.parseInt` reads; None for other texts and for numbers of more than 32 bits."""
    return _integer_of(ConfigType.INT, text)


def parse_int64(text: str) -> int | None:
    """The same for `Long.parseLong` and 64 bits."""
    return _integer_of(ConfigType.LONG, text)


def split_list(text: str) -> list[str]:
    """The elements between commas, without the blanks around them: those of `\\s` in Java's expressions."""
    return [element.strip(_BLANKS) for element in text.split(",")]


def parse_type(name: str, text: str, config_type: ConfigType) -> ConfigValue:
    """Parse a text as a value of the type. Raises ConfigError. Kafka: ConfigDef.parseType."""
    trimmed = java_trim(text)
    match config_type:
        case ConfigType.BOOLEAN:
            lowered = trimmed.lower()
            if lowered not in ("true", "false"):
                raise ConfigError.of_value(name, text, "Expected value to be either true or false")
            return lowered == "true"
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            number = _integer_of(config_type, trimmed)
            if number is None:
                raise ConfigError.of_value(name, text, f"Not a number of type {config_type.name}")
            return number
        case ConfigType.DOUBLE:
            if _DOUBLE.fullmatch(trimmed) is None:
                raise ConfigError.of_value(name, text, "Not a number of type DOUBLE")
            return float(trimmed if trimmed.endswith("y") else trimmed.rstrip("fFdD"))
        case ConfigType.LIST:
            return split_list(trimmed) if trimmed else []
        case ConfigType.PASSWORD:
            return Password(trimmed)
        case ConfigType.STRING | ConfigType.CLASS:
            return trimmed


class Validator(Protocol):
    """A check of a parsed value; `str(validator)` is the column "Valid Values" of the configuration page."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        """Raise ConfigError unless the value is valid."""


class Range(NamedTuple):
    """A number between two inclusive bounds; None is no bound."""

    low: int | float | None = None
    high: int | float | None = None

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, int | float):
            raise ConfigError.of_value(name, None, "Value must be non-null")
        if self.low is not None and value < self.low:
            raise ConfigError.of_value(name, value, f"Value must be at least {self.low}")
        if self.high is not None and value > self.high:
            raise ConfigError.of_value(name, value, f"Value must be no more than {self.high}")

    def __str__(self) -> str:
        parts = [str(self.low)] if self.low is not None else []
        parts.append("...")
        if self.high is not None:
            parts.append(str(self.high))
        return "[" + ",".join(parts) + "]"


class ValidString(NamedTuple):
    """One of a fixed set of words."""

    allowed: tuple[str, ...]

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if value not in self.allowed:
            raise ConfigError.of_value(name, value, "String must be one of: " + ", ".join(self.allowed))

    def __str__(self) -> str:
        return "[" + ", ".join(self.allowed) + "]"


class CaseInsensitiveValidString(NamedTuple):
    """One of a fixed set of words, in any case."""

    allowed: tuple[str, ...]

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, str) or value.upper() not in {word.upper() for word in self.allowed}:
            words = ", ".join(self.allowed)
            raise ConfigError.of_value(name, value, f"String must be one of (case insensitive): {words}")

    def __str__(self) -> str:
        return "(case insensitive) [" + ", ".join(self.allowed) + "]"


class ValidList(NamedTuple):
    """A list whose every element is one of a fixed set of words."""

    allowed: tuple[str, ...]

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        element_check = ValidString(self.allowed)
        for element in value if isinstance(value, list) else ():
            element_check.ensure_valid(name, element)

    def __str__(self) -> str:
        return str(ValidString(self.allowed))


class NonEmptyString:
    """A string of at least one character."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if value == "":
            raise ConfigError.of_value(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "non-empty string"


def at_least(low: int | float) -> Range:
    return Range(low=low)


def between(low: int | float, high: int | float) -> Range:
    return Range(low=low, high=high)


class NoDefault(Enum):
    """The default of a required key."""

    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One row of the table. `default` is a configuration text; None is Kafka's null."""

    name: str
    type: ConfigType
    default: str | NoDefault | None
    importance: Importance
    doc: str
    validator: Validator | None = None
    internal: bool = False

    def parse(self, text: str | None) -> ConfigValue:
        """The typed, validated value of a text; None is null. Raises ConfigError."""
        value = None if text is None else parse_type(self.name, text, self.type)
        if self.type is ConfigType.CLASS and self.validator is None and value not in (None, self.default):
            raise ConfigError.of_value(self.name, text, f"Class {text} could not be found.")
        if self.validator is not None:
            self.validator.ensure_valid(self.name, value)
        return value

    def default_value(self) -> ConfigValue:
        if isinstance(self.default, NoDefault):
            raise ConfigError(f'Missing required configuration "{self.name}" which has no default value.')
        if self.default is None:
            return None
        value = _parsed_default(self.name, self.default, self.type)
        return list(value) if isinstance(value, list) else value


@cache
def _parsed_default(name: str, text: str, config_type: ConfigType) -> ConfigValue:
    """Parsed once: a start needs each default several times."""
    return parse_type(name, text, config_type)


class ConfigDef:
    """An ordered table of `ConfigKey`s."""

    __slots__ = ("_keys",)

    def __init__(self, keys: tuple[ConfigKey, ...] = ()) -> None:
        self._keys: dict[str, ConfigKey] = {}
        for key in keys:
            self.define(key)

    def define(self, key: ConfigKey) -> ConfigDef:
        if key.name in self._keys:
            raise ConfigError(f"Configuration {key.name} is defined twice.")
        self._keys[key.name] = key
        return self

    def __getitem__(self, name: str) -> ConfigKey:
        return self._keys[name]

    def get(self, name: str) -> ConfigKey | None:
        return self._keys.get(name)

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def __iter__(self) -> Iterator[ConfigKey]:
        return iter(self._keys.values())

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def names(self) -> list[str]:
        return sorted(self._keys)

    def parse(self, name: str, text: str | None) -> ConfigValue:
        """The typed value of one key. Raises ConfigError for an unknown name or an invalid value."""
        key = self._keys.get(name)
        if key is None:
            raise ConfigError(f"Unknown configuration '{name}'")
        return key.parse(text)

    def parse_all(self, texts: Mapping[str, str | None]) -> dict[str, ConfigValue]:
        """All keys of the table with their given or default values. Ignores unknown names. Raises ConfigError."""
        return {
            key.name: key.parse(texts[key.name]) if key.name in texts else key.default_value()
            for key in self._keys.values()
        }

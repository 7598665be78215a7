"""Checks that only broker keys need."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.storage.config_def import ConfigError, ConfigValue


@dataclass(frozen=True, slots=True)
class NonNull:
    """A value must be given."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if value is None:
            raise ConfigError.of_value(name, None, "entry must be non null")

    def __str__(self) -> str:
        return "non-null string"


@dataclass(frozen=True, slots=True)
class MinusOneOrAtLeast:
    """A size for which -1 means that another key decides."""

    low: int

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, int) or (value != -1 and value < self.low):
            raise ConfigError.of_value(name, value, f"Value must be -1 or at least {self.low}")

    def __str__(self) -> str:
        return f"-1 or [{self.low},...]"

"""The configuration of a broker for tests, from keywords and values of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

SettingValue: TypeAlias = "str | int | float | bool | list[str] | tuple[str, ...] | None"

TEST_DEFAULTS: Final[Mapping[str, str]] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
"""Where a broker for tests differs from `odradek serve` without arguments. An internal topic of 50 partitions, Kafka's
default, takes a tenth of a second, which every test with a consumer group would wait for."""

_SHORT_NAMES: Final = {"as.version": "odradek.as.version"}


def broker_settings(config: Mapping[str, SettingValue] | None, keywords: Mapping[str, SettingValue]) -> dict[str, str]:
    """Texts by key. A keyword is a key with `_` for `.` and takes precedence over the mapping; `as_version` is
    `odradek.as.version`, the release of Apache Kafka whose APIs are served.

    Raises: TypeError for a value that is no text, number, truth value or list of texts.
    """
    given = {**(config or {}), **{_key(name): value for name, value in keywords.items()}}
    given = {_SHORT_NAMES.get(name, name): value for name, value in given.items()}
    settings = dict(TEST_DEFAULTS)
    if "zookeeper.connect" in given:
        settings = {"listeners": TEST_DEFAULTS["listeners"]}
    for name, value in given.items():
        if value is None:
            settings.pop(name, None)
        else:
            settings[name] = _text(name, value)
    return settings


def _key(keyword: str) -> str:
    return "odradek.as.version" if keyword == "as_version" else keyword.replace("_", ".")


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if isinstance(value, str | int | float):
        return str(value)
    raise TypeError(f"{name}: a text, a number, a truth value or a list of texts is expected, not {value!r}")

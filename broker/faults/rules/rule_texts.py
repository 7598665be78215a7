"""Rules as JSON or YAML, and back. One table says which keys an action has, so all ways to write a rule are the same.

    {"action": "delay", "ms": "500ms", "api": "Fetch", "topic": "t", "times": 2}

Raises: RuleError, which names the key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Final, cast

from odradek.broker.faults.rules.durations import to_ms
from odradek.broker.faults.rules.rules import (
    ALWAYS,
    MAX_AGE_MS,
    MAX_DELAY_MS,
    Action,
    BlackHole,
    CorruptCrc,
    Delay,
    Drop,
    Duplicate,
    Error,
    HalfAnswer,
    HalfFrame,
    Level,
    Match,
    Rule,
    SlowBytes,
    StaleMetadata,
    Throttle,
)
from odradek.broker.faults.rules.shorthands import SHORTHANDS, spelled_out
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.field import VersionRange
from odradek.protocol.errors import ErrorCode

Plain = dict[str, object]

ACTIONS: Final[Mapping[str, type[Action]]] = {
    "error": Error,
    "delay": Delay,
    "drop": Drop,
    "black_hole": BlackHole,
    "half_answer": HalfAnswer,
    "half_frame": HalfFrame,
    "slow_bytes": SlowBytes,
    "duplicate": Duplicate,
    "corrupt_crc": CorruptCrc,
    "stale_metadata": StaleMetadata,
    "throttle": Throttle,
}

TEXT_MAX: Final = 32_767
"""Bytes of one text of a rule in UTF-8: the longest string of the protocol."""

INT_MAX: Final = 2**31 - 1

_APIS: Final = {spec.name.lower(): spec.key for spec in API.values()}


class RuleError(ValueError):
    """A rule that cannot be read. `key` is the one that is wrong, or empty."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}" if key else reason)
        self.key = key
        self.reason = reason

    def __reduce__(self) -> tuple[type[RuleError], tuple[str, str]]:
        return RuleError, (self.key, self.reason)


def rule_of(plain: Mapping[str, object]) -> Rule:
    """The rule that the keys and values stand for. Raises: RuleError."""
    values = dict(plain)
    if "action" not in values:
        raise RuleError("action", "is missing")
    kind = values.pop("action")
    if isinstance(kind, str) and kind in SHORTHANDS:
        values = spelled_out(kind, keys=values)
        kind = values.pop("action")
    action_type = ACTIONS.get(kind) if isinstance(kind, str) else None
    if action_type is None:
        raise RuleError("action", f"{str(kind)[:80]!r} is none of {', '.join(sorted({*ACTIONS, *SHORTHANDS}))}")
    name = _text(values.pop("name", ""), "name")
    is_enabled = _flag(values.pop("enabled", True), "enabled")
    action = cast("Action", _build(action_type, _ACTION_FIELDS, values))
    match = _match(values)
    if values:
        key = next(iter(values))
        known = sorted({*_names(action_type), *_MATCH_FIELDS, "name", "enabled", "action"})
        raise RuleError(str(key), f"is no key of {kind}: {', '.join(known)}")
    rule = Rule(match=match, action=action, name=name, is_enabled=is_enabled)
    _check(rule)
    return rule


def action_name(action: Action) -> str:
    return next(name for name, kind in ACTIONS.items() if type(action) is kind)


def action_to_plain(action: Action) -> Plain:
    plain: Plain = {"action": action_name(action)}
    for field in fields(action):
        value = getattr(action, field.name)
        if value != field.default:
            plain[field.name] = _plain(value)
    return plain


def rule_to_plain(rule: Rule) -> Plain:
    """What `rule_of` reads."""
    plain = action_to_plain(rule.action)
    if rule.name:
        plain["name"] = rule.name
    if not rule.is_enabled:
        plain["enabled"] = False
    match = rule.match
    if match.apis is not None:
        plain["api"] = sorted(API[key].name for key in match.apis)
    for key, field in _MATCH_NAMES.items():
        value = getattr(match, field)
        if value != _DEFAULTS[field]:
            plain[key] = _plain(value)
    return plain


def api_key(value: object) -> ApiKey:
    """By its name (`Fetch`) in any case, with or without underscores. Raises: RuleError."""
    found = _APIS.get(value.lower().replace("_", "")) if isinstance(value, str) else None
    if found is None:
        raise RuleError("api", f"{value!r} is no API of Kafka: Produce, Fetch, Metadata, ...")
    return found


def error_code(value: object, key: str = "code") -> ErrorCode:
    """By its name in any case, or its number. Raises: RuleError."""
    try:
        if isinstance(value, str):
            return ErrorCode[value.upper()]
        if isinstance(value, int) and not isinstance(value, bool):
            return ErrorCode(value)
    except (KeyError, ValueError):
        pass
    raise RuleError(key, f"{value!r} is no error code of Kafka: NOT_LEADER_OR_FOLLOWER, 6, ...")


def _apis(value: object, key: str) -> frozenset[ApiKey] | None:
    if value is None:
        return None
    names = value if isinstance(value, list | tuple | set | frozenset) else [value]
    if not names:
        raise RuleError(key, "names no API")
    return frozenset(name if isinstance(name, ApiKey) else api_key(name) for name in names)


def _versions(value: object, key: str) -> VersionRange | None:
    if value is None or isinstance(value, VersionRange):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    try:
        versions = VersionRange.parse(_text(value, key))
    except ValueError:
        raise RuleError(key, f"{value!r} is no range of versions: 3, 0-12, 9+") from None
    if not 0 <= versions.first <= versions.last <= 32_767:
        raise RuleError(key, f"{value!r} has no version in it")
    return versions


def _text(value: object, key: str) -> str:
    """One that an answer can hold: lone surrogates, which JSON may have, are not in UTF-8."""
    try:
        if isinstance(value, str) and len(value.encode()) <= TEXT_MAX:
            return value
    except UnicodeEncodeError:
        pass
    raise RuleError(key, f"has to be a text of at most {TEXT_MAX} bytes in UTF-8")


def _flag(value: object, key: str) -> bool:
    if not isinstance(value, bool):
        raise RuleError(key, f"{value!r} is neither true nor false")
    return value


def _number(low: int, high: int = INT_MAX) -> Callable[[object, str], int]:
    def number(value: object, key: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise RuleError(key, f"{str(value)[:80]!r} is no whole number from {low} to {high}")
        return value

    return number


def _duration(high_ms: int) -> Callable[[object, str], int]:
    def duration(value: object, key: str) -> int:
        try:
            ms = to_ms(value)
        except ValueError as error:
            raise RuleError(key, str(error)[:200]) from None
        if ms > high_ms:
            raise RuleError(key, f"is longer than {high_ms} ms")
        return ms

    return duration


def _probability(value: object, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise RuleError(key, f"{str(value)[:80]!r} is no number from 0 to 1")
    return float(value)


def _connection(value: object, key: str) -> int | str:
    return _text(value, key) if isinstance(value, str) else _number(1)(value, key)


def _level(value: object, key: str) -> Level:
    if isinstance(value, Level):
        return value
    try:
        return Level(value)
    except ValueError:
        raise RuleError(key, f"{str(value)[:80]!r} is none of top, entry, partition") from None


def _optional(read: Callable[[object, str], object]) -> Callable[[object, str], object]:
    return lambda value, key: None if value is None else read(value, key)


_Readers = Mapping[str, Callable[[object, str], object]]

_ACTION_FIELDS: Final[_Readers] = {
    "code": error_code,
    "at": _optional(_level),
    "applied": _flag,
    "message": _optional(_text),
    "ms": _duration(MAX_DELAY_MS),
    "before": _flag,
    "reset": _flag,
    "bytes": _optional(_number(0)),
    "close": _flag,
    "bytes_per_second": _number(1),
    "mute": _flag,
}

_MATCH_FIELDS: Final[_Readers] = {
    "api": _apis,
    "versions": _versions,
    "topic": _optional(_text),
    "partition": _optional(_number(0)),
    "client_id": _optional(_text),
    "principal": _optional(_text),
    "connection": _optional(_connection),
    "nth": _optional(_number(1)),
    "every": _optional(_number(1)),
    "probability": _probability,
    "seed": _number(-INT_MAX),
    "times": _optional(_number(1)),
    "after": _duration(MAX_AGE_MS),
    "until": _optional(_duration(MAX_AGE_MS)),
}

_RENAMED: Final = {"api": "apis", "after": "after_ms", "until": "until_ms"}
_MATCH_NAMES: Final = {key: _RENAMED.get(key, key) for key in _MATCH_FIELDS if key != "api"}
_DEFAULTS: Final = {field.name: field.default for field in fields(Match)}


def _names(action_type: type[Action]) -> list[str]:
    return [field.name for field in fields(action_type)]


def _build(kind: type[Action], readers: _Readers, values: Plain) -> object:
    """An action of the values that it has, which are taken out. Raises: RuleError."""
    arguments = {name: readers[name](values.pop(name), name) for name in _names(kind) if name in values}
    try:
        return cast("Callable[..., object]", kind)(**arguments)
    except TypeError:
        missing = next(name for name in _names(kind) if name not in arguments)
        raise RuleError(missing, "is missing") from None


def _match(values: Plain) -> Match:
    if "version" in values and "versions" not in values:
        values["versions"] = values.pop("version")
    arguments = {
        _RENAMED.get(key, key): read(values.pop(key), key) for key, read in _MATCH_FIELDS.items() if key in values
    }
    return cast("Callable[..., Match]", Match)(**arguments)


def _check(rule: Rule) -> None:
    """Raises: RuleError for a rule that could never do anything."""
    match, action = rule.match, rule.action
    only = {StaleMetadata: ApiKey.METADATA, CorruptCrc: ApiKey.FETCH}.get(type(action))
    if only is not None and match.apis is not None and only not in match.apis:
        raise RuleError("api", f"{action_name(action)} is for {API[only].name} only")
    if match.partition is not None and match.topic is None:
        raise RuleError("partition", "needs a topic")
    if match.nth is not None and match.every is not None:
        raise RuleError("nth", "and every exclude each other")
    if match.until_ms is not None and match.until_ms <= match.after_ms:
        raise RuleError("until", "is not later than after")
    if isinstance(action, Error) and action.code is ErrorCode.NONE and not action.applied:
        raise RuleError("code", "NONE needs applied: true, or a client takes for done what was not")
    assert match.probability <= ALWAYS


def _plain(value: object) -> object:
    if isinstance(value, ErrorCode):
        return value.name
    if isinstance(value, Level):
        return value.value
    if isinstance(value, VersionRange):
        return str(value)
    return value

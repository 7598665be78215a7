"""The settings of the service: keys of zoo.cfg, with ZooKeeper's defaults.

Keys that concern an ensemble, ZooKeeper's own files or its Java classes have no effect here; the service logs each that
it ignores.

ZooKeeper: QuorumPeerConfig, ServerConfig.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from odradek.broker.machine.startup_error import StartupError
from odradek.controller.tree.private_file import IN_MEMORY

DEFAULT_PORT: Final = 2181
WORDS_ALWAYS_ALLOWED: Final = frozenset(("srvr",))
ALL_WORDS: Final = "*"

_TICKS_MIN, _TICKS_MAX = 2, 20
"""The shortest and the longest session time-out, in ticks."""


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """`words`: the four-letter words that are answered; `max_buffer`: the largest request in bytes."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    directory: str = "odradek-zookeeper"
    tick_time_ms: int = 3000
    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 60000
    max_client_connections: int = 60
    max_connections: int = 0
    max_buffer: int = 0xFFFFF
    outstanding_max: int = 1000
    backlog: int = -1
    words: frozenset[str] = WORDS_ALWAYS_ALLOWED
    container_interval_ms: int = 60_000


_NUMBERS: Final = {
    "clientPort": "port",
    "tickTime": "tick_time_ms",
    "minSessionTimeout": "min_session_timeout_ms",
    "maxSessionTimeout": "max_session_timeout_ms",
    "maxClientCnxns": "max_client_connections",
    "maxCnxns": "max_connections",
    "jute.maxbuffer": "max_buffer",
    "globalOutstandingLimit": "outstanding_max",
    "clientPortListenBacklog": "backlog",
    "znode.container.checkIntervalMs": "container_interval_ms",
}
_TEXTS: Final = {"clientPortAddress": "host", "dataDir": "directory"}
_WORDS_KEY: Final = "4lw.commands.whitelist"


def read_zoo_cfg(lines: Iterable[str]) -> tuple[dict[str, object], list[str]]:
    """The fields of ServiceSettings in the lines of a zoo.cfg, and the keys that have no effect here.

    Raises StartupError for a line or a number that is none.
    """
    fields: dict[str, object] = {}
    ignored: list[str] = []
    for line in lines:
        text = line.strip()
        if not text or text[0] in "#!":
            continue
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise StartupError(f"zoo.cfg: {text!r} is not KEY=VALUE")
        key = key.removeprefix("zookeeper.")
        if key in _NUMBERS:
            fields[_NUMBERS[key]] = _number(key, value)
        elif key in _TEXTS:
            fields[_TEXTS[key]] = value
        elif key == _WORDS_KEY:
            words = frozenset(word.strip() for word in value.split(",") if word.strip())
            fields["words"] = words | WORDS_ALWAYS_ALLOWED
        else:
            ignored.append(key)
    return fields, ignored


def make_settings(fields: dict[str, object]) -> ServiceSettings:
    """Settings with ZooKeeper's defaults for what is missing. Raises StartupError."""
    settings = ServiceSettings(**fields)  # type: ignore[arg-type]
    if settings.tick_time_ms <= 0:
        raise StartupError(f"tickTime={settings.tick_time_ms}: it must be positive")
    least, most = settings.min_session_timeout_ms, settings.max_session_timeout_ms
    if fields.get("min_session_timeout_ms", -1) == -1:
        least = settings.tick_time_ms * _TICKS_MIN
    if fields.get("max_session_timeout_ms", -1) == -1:
        most = settings.tick_time_ms * _TICKS_MAX
    if least > most:
        raise StartupError("minSessionTimeout must not be larger than maxSessionTimeout")
    directory = settings.directory if settings.directory == IN_MEMORY else os.path.abspath(settings.directory)
    changed: dict[str, object] = {
        "directory": directory,
        "min_session_timeout_ms": least,
        "max_session_timeout_ms": most,
    }
    return ServiceSettings(**{**fields, **changed})  # type: ignore[arg-type]


def _number(key: str, value: str) -> int:
    try:
        return int(value, 0)
    except ValueError:
        raise StartupError(f"zoo.cfg: {key}={value} is not a number") from None

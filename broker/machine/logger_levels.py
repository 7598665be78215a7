"""The loggers of the process by name, with their levels: those of the modules, and names that Apache Kafka's have.

    kafka.controller, kafka.log.LogCleaner, ...   another name for the logger that writes such lines here
    kafka.request.logger                          requests with their responses (`network/requests/request_log.py`)
    kafka.request.logger.CLIENT                   the same for one client id; there is one as soon as a level is set
    kafka.authorizer.logger                       what clients may and may not do (`security/authorizer/audit_log.py`)

The names of modules exist as soon as the module is imported, as Apache Kafka's exist with the class.

Kafka: Log4jController.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from odradek.broker.machine.log_setup import REQUEST_LOGGER, TRACE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROOT_LOGGER: Final = "root"

LEVELS: Final = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": TRACE,
    "WARN": logging.WARNING,
}

CLIENT_PREFIX: Final = f"{REQUEST_LOGGER}."

CLIENTS_MAX: Final = 100
"""Client ids with a level of their own."""

KAFKA_LOGGERS: Final = {
    "kafka": "odradek",
    "kafka.cluster.Partition": "odradek.broker.partition",
    "kafka.controller": "odradek.controller",
    "kafka.coordinator.group": "odradek.coordinator.group",
    "kafka.coordinator.group.GroupCoordinator": "odradek.coordinator.group",
    "kafka.coordinator.transaction": "odradek.coordinator.transaction",
    "kafka.coordinator.transaction.TransactionCoordinator": "odradek.coordinator.transaction",
    "kafka.log": "odradek.storage",
    "kafka.log.LogCleaner": "odradek.storage.cleaning",
    "kafka.log.LogManager": "odradek.storage.manager",
    "kafka.log.UnifiedLog": "odradek.storage.log",
    "kafka.network": "odradek.broker.network",
    "kafka.network.SocketServer": "odradek.broker.network",
    "kafka.security.authorizer.AclAuthorizer": "odradek.broker.security.authorizer",
    "kafka.server.KafkaApis": "odradek.broker.apis",
    "kafka.server.KafkaServer": "odradek.broker.server",
    "kafka.server.ReplicaFetcherManager": "odradek.broker.replication",
    "kafka.server.ReplicaFetcherThread": "odradek.broker.replication",
    "kafka.server.ReplicaManager": "odradek.broker.replica_manager",
    "org.apache.zookeeper": "kazoo",
    "state.change.logger": "odradek.state.change",
}
"""Apache Kafka's name -> the logger that writes such lines here."""


class LoggerLevels:
    """The levels of one broker's process. `on_change` is called behind each change."""

    def __init__(self) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self._clients: dict[str, int] = {}
        logging.getLogger(REQUEST_LOGGER)

    def levels(self) -> dict[str, str]:
        """Every logger with the name of the level in force."""
        found = {name: _name_of(logger.getEffectiveLevel()) for name, logger in _loggers().items()}
        for client_id, level in self._clients.items():
            found[CLIENT_PREFIX + client_id] = _name_of(level)
        return found

    def exists(self, name: str) -> bool:
        return name in _loggers() or _is_of_client(name)

    def set_level(self, name: str, level: str) -> None:
        """Set the level of an existing logger to one of `LEVELS`."""
        if _is_of_client(name):
            self._clients[name.removeprefix(CLIENT_PREFIX)] = LEVELS[level]
        else:
            _loggers()[name].setLevel(LEVELS[level])
        self.on_change()

    def unset_level(self, name: str) -> None:
        """Have an existing logger inherit its level."""
        if _is_of_client(name):
            self._clients.pop(name.removeprefix(CLIENT_PREFIX), None)
        else:
            _loggers()[name].setLevel(logging.NOTSET)
        self.on_change()

    def request_level(self, client_id: str) -> int:
        """The level at which the requests of a client are logged."""
        level = self._clients.get(client_id)
        return logging.getLogger(REQUEST_LOGGER).getEffectiveLevel() if level is None else level

    def lowest_request_level(self) -> int:
        """The lowest level at which the requests of any client are logged."""
        return min([logging.getLogger(REQUEST_LOGGER).getEffectiveLevel(), *self._clients.values()])

    def has_room_for(self, names: Iterable[str]) -> bool:
        """Whether there may be a level for each client among these loggers."""
        new = {name for name in names if _is_of_client(name)} - {CLIENT_PREFIX + client for client in self._clients}
        return len(self._clients) + len(new) <= CLIENTS_MAX


def _is_of_client(name: str) -> bool:
    return name.startswith(CLIENT_PREFIX) and name != CLIENT_PREFIX


def _loggers() -> dict[str, logging.Logger]:
    found = {name: logging.getLogger(name) for name in list(logging.root.manager.loggerDict)}  # of packages, too
    found.update((name, logging.getLogger(target)) for name, target in KAFKA_LOGGERS.items())
    found[ROOT_LOGGER] = logging.root
    return found


def _name_of(level: int) -> str:
    return next((name for name, number in LEVELS.items() if number == level), logging.getLevelName(level))

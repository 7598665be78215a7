"""One directory of `log.dirs`: its lock, its identity, its state of health, its sync queue.

The lock is the record lock a JVM takes on `.lock`, so that the two exclude each other. Record locks belong to the
process and fall when *any* descriptor of the file is closed: the file is therefore opened once, and a registry in this
process refuses a second broker on the same directory.

A failed directory stays failed until the next start: every log in it answers KAFKA_STORAGE_ERROR, and nothing more is
written to it. A full one (`space`) is online, and writable again when there is room.

Kafka: the lock and offline handling of LogManager, LogDirFailureChannel, BrokerMetadataCheckpoint and
CleanShutdownFileHandler.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
from typing import TYPE_CHECKING, Final

from odradek.storage.disk.disk_space import DiskSpace
from odradek.storage.disk.properties_file import parse_properties
from odradek.storage.disk.sync_queue import SyncQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.disk.environment import Environment

LOCK_FILE: Final = ".lock"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
META_PROPERTIES_FILE: Final = "meta.properties"
_CLEAN_SHUTDOWN_CONTENT: Final = b'{"version":0,"brokerEpoch":-1}'

logger = logging.getLogger(__name__)

_locked_in_this_process: set[tuple[int, int]] = set()
"""Device and inode of every lock file held. Process-wide because record locks are."""


class LogDirError(Exception):
    """A directory that cannot be used, with a reason for the operator."""


class LogDir:
    """A log directory. Synchronous and cheap until `open`."""

    __slots__ = ("_environment", "_identity", "_lock_fd", "failure", "on_failure", "path", "space", "sync_queue")

    def __init__(self, path: str, environment: Environment) -> None:
        self.path = os.path.abspath(path)
        self.failure: OSError | None = None
        self.on_failure: Callable[[LogDir], None] | None = None
        self._environment = environment
        self.space = DiskSpace(self.path, environment.fs, environment.clock)
        self.sync_queue = SyncQueue(
            environment.fs,
            environment.io_pool,
            on_failure=lambda error: self.fail("Error while writing small files", error),
            on_full=self.space.ran_out,
        )
        self._lock_fd = -1
        self._identity = (0, 0)

    def __repr__(self) -> str:
        return f"LogDir({self.path!r})"

    @property
    def is_online(self) -> bool:
        return self.failure is None

    def file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def fail(self, message: str, error: OSError) -> None:
        """Take the directory offline, once."""
        if self.failure is not None:
            return
        self.failure = error
        logger.error("%s; stopping serving logs in dir %s: %s", message, self.path, error)
        self.sync_queue.fail(error)
        if self.on_failure is not None:
            self.on_failure(self)

    def look_for_room(self) -> None:
        """To be called now and then: a disk fills up, and is emptied, by others as well."""
        self.space.look()
        self.sync_queue.retry()

    # -- the lock ----------------------------------------------------------------------------------

    def create(self) -> None:
        """Make the directory if it is missing, and see that it can be written to. Raises OSError."""
        parents = []
        missing = self.path
        while not os.path.exists(missing):
            missing = os.path.dirname(missing)
            parents.append(missing)
        try:
            self._environment.fs.make_dir(self.path)
        except FileExistsError as error:
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", self.path) from error
        for parent in parents:
            self._environment.fs.sync_dir(parent)
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "cannot be read and written", self.path)

    def lock(self) -> None:
        """Take the directory for this broker, or raise LogDirError."""
        refusal = (
            f"Failed to acquire lock on file .lock in {self.path}. A Kafka instance in another process or thread is "
            "using this directory."
        )
        # Looked up before it is opened: closing a second descriptor would release the other broker's lock (POSIX).
        if self._lock_identity() in _locked_in_this_process:
            raise LogDirError(refusal)
        fd = os.open(self.file(LOCK_FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            raise LogDirError(refusal) from error
        self._lock_fd, self._identity = fd, self._lock_identity()
        _locked_in_this_process.add(self._identity)

    def _lock_identity(self) -> tuple[int, int]:
        """Device and inode of the lock file; (0, 0) while there is none."""
        try:
            status = os.stat(self.file(LOCK_FILE))
        except FileNotFoundError:
            return 0, 0
        return status.st_dev, status.st_ino

    def unlock(self) -> None:
        if self._lock_fd >= 0:
            _locked_in_this_process.discard(self._identity)
            os.close(self._lock_fd)
            self._lock_fd = -1

    # -- clean shutdown ----------------------------------------------------------------------------

    def take_clean_shutdown(self) -> bool:
        """Whether the last stop was clean. The marker is removed at once: it speaks for one start only."""
        path = self.file(CLEAN_SHUTDOWN_FILE)
        if not os.path.exists(path):
            return False
        self._environment.fs.unlink(path)
        # A loss of power must not bring it back once logs are written to.
        self._environment.fs.sync_dir(self.path)
        return True

    def mark_clean_shutdown(self) -> None:
        """The last word of a clean stop, after everything else is on the disk."""
        self._environment.fs.replace_file(self.file(CLEAN_SHUTDOWN_FILE), _CLEAN_SHUTDOWN_CONTENT)

    # -- meta.properties ---------------------------------------------------------------------------

    def read_meta_properties(self) -> dict[str, str] | None:
        """What the directory says it belongs to; None for an unformatted one. Raises OSError for a damaged file."""
        path = self.file(META_PROPERTIES_FILE)
        try:
            with open(path, encoding="utf-8") as file:
                return parse_properties(file.read())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise OSError(errno.EINVAL, f"not a properties file ({error})", path) from error

    def write_meta_properties(self, properties: dict[str, str]) -> None:
        """Store the identity, if it differs from what is there."""
        if properties == self.read_meta_properties():
            return
        content = "".join(f"{key}={value}\n" for key, value in properties.items()).encode()
        self._environment.fs.replace_file(self.file(META_PROPERTIES_FILE), b"#\n" + content)


def check_meta_properties(
    found: dict[str, str] | None, *, path: str, broker_id: int | None, cluster_id: str | None
) -> None:
    """Refuse a directory of another broker, another cluster or a KRaft node, naming what it is."""
    if found is None:
        return
    version = found.get("version", "0")
    if version != "0":
        raise LogDirError(
            f"{path}/{META_PROPERTIES_FILE} has version {version}: it was formatted for KRaft, which a broker in "
            "ZooKeeper mode cannot use"
        )
    stored_broker, stored_cluster = found.get("broker.id"), found.get("cluster.id")
    if broker_id is not None and stored_broker is not None and stored_broker != str(broker_id):
        raise LogDirError(
            f"Configured broker.id {broker_id} doesn't match stored broker.id {stored_broker} in "
            f"{path}/{META_PROPERTIES_FILE}. If you moved your data, make sure your configured broker.id matches."
        )
    if cluster_id is not None and stored_cluster is not None and stored_cluster != cluster_id:
        raise LogDirError(
            f"The Cluster ID {cluster_id} doesn't match stored clusterId {stored_cluster} in "
            f"{path}/{META_PROPERTIES_FILE}. The broker is trying to join the wrong cluster."
        )

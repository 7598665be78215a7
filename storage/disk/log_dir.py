"""One directory of `log.dirs`: its lock, its meta.properties, its online or offline state, its sync queue.

The lock is the record lock that a JVM takes on `.lock`, so that Apache's broker and this one exclude each other. Record
locks belong to the process and are released when *any* descriptor of the file is closed: the file is therefore opened
once, and a registry in this process refuses a second broker on the same directory.

A failed directory stays offline until the next start: every log in it raises KAFKA_STORAGE_ERROR, and nothing more is
written to it. A full one (`space`) stays online, and is writable again when there is space.

Kafka: LogManager.lockLogDirs, LogDirFailureChannel, MetaPropertiesEnsemble, CleanShutdownFileHandler.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
from typing import TYPE_CHECKING, Final

from odradek.storage.disk.disk_space import DiskSpace
from odradek.storage.disk.file_system import may_exist
from odradek.storage.disk.properties_file import read_properties
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
"""Device and inode of every lock file held. Process-wide, because record locks are."""


class LogDirError(Exception):
    """A log directory cannot be used; the message is for the operator."""


class LogDir:
    """A log directory."""

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
        """Take the directory offline and call `on_failure`, once."""
        if self.failure is not None:
            return
        self.failure = error
        logger.error("%s; stopping serving logs in dir %s: %s", message, self.path, error)
        self.sync_queue.fail(error)
        if self.on_failure is not None:
            self.on_failure(self)

    def check_space(self) -> None:
        """Measure the free space and retry queued files. Call regularly: other processes use the disk too."""
        self.space.check()
        self.sync_queue.retry()

    # -- the lock ----------------------------------------------------------------------------------

    def create(self) -> None:
        """Create the directory if it is missing, and check that it is writable. Raises OSError."""
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
        """Lock the directory for this broker. Raises: LogDirError when another broker has it; OSError."""
        refusal = (
            f"Failed to acquire lock on file .lock in {self.path}. A Kafka instance in another process or thread is "
            "using this directory."
        )
        # Checked before opening: closing a second descriptor would release the other broker's lock (POSIX).
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
        """Device and inode of the lock file; (0, 0) without one."""
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
        """Whether the last stop was clean. Removes the marker, which is valid for one start only. Raises OSError."""
        path = self.file(CLEAN_SHUTDOWN_FILE)
        if not may_exist(path):
            return False
        self._environment.fs.unlink(path)
        # Otherwise a loss of power could restore the marker after logs were written to.
        self._environment.fs.sync_dir(self.path)
        return True

    def mark_clean_shutdown(self) -> None:
        """Write the marker of a clean stop, after everything else is on the disk. Raises OSError."""
        self._environment.fs.replace_file(self.file(CLEAN_SHUTDOWN_FILE), _CLEAN_SHUTDOWN_CONTENT)

    # -- meta.properties ---------------------------------------------------------------------------

    def read_meta_properties(self) -> dict[str, str] | None:
        """The content of meta.properties; None without the file. Raises OSError, also for a damaged file."""
        path = self.file(META_PROPERTIES_FILE)
        try:
            return read_properties(path)
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise OSError(errno.EINVAL, f"not a properties file ({error})", path) from error

    def write_meta_properties(self, properties: dict[str, str]) -> None:
        """Write meta.properties, if the content changes. Raises OSError."""
        if properties == self.read_meta_properties():
            return
        content = "".join(f"{key}={value}\n" for key, value in properties.items()).encode()
        self._environment.fs.replace_file(self.file(META_PROPERTIES_FILE), b"#\n" + content)


def check_meta_properties(
    found: dict[str, str] | None, *, path: str, broker_id: int | None, cluster_id: str | None
) -> None:
    """Raise LogDirError for a directory of another broker, another cluster or a KRaft node."""
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

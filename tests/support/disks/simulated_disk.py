"""A disk that can lose its power: synced data is there afterwards, and a seed decides about the rest.

The files live in a real directory, where everything reads and maps them as usual. Beside them the disk keeps what is
durable: the bytes of each file at its last fsync, the names in each directory at its last fsync, and the changes of
names since then. `cut_power` makes a directory of what is left:

* A file has the old bytes, the new ones, or a mixture in blocks, and the old length, the new one, or one in between;
  blocks that were cut off or not there before may be zeros. Writes through a mapping are treated like all others.
* Some of the changes of names (create, rename, remove) have happened; for one file, the first ones in their order. A
  rename has happened as a whole or not at all.

That is what POSIX promises, and no more: a file that was synced has no name until its directory is synced.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from odradek.storage.disk.file_system import OsFileSystem
from tests.support.disks.faulty_disk import PLENTY

if TYPE_CHECKING:
    from odradek.storage.disk.file_system import Bytes

BLOCKS: Final = (16, 64, 512, 4096)
"""What is written at once: from a few bytes, as a torn sector leaves them, to a page."""


class PowerCutError(BaseException):
    """The machine has no power. Not an Exception, so that nothing catches it."""


@dataclass(slots=True, eq=False)
class Node:
    """A file or directory, under whatever name."""

    is_dir: bool
    synced: bytes = b""
    smallest: int = 0
    """The least length since the last sync."""
    last: bytes | None = None
    """The content when it lost its name; None while it has one."""
    names: dict[str, Node] = field(default_factory=dict)
    """Of a directory, as every process sees them."""
    durable: dict[str, Node] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Rename:
    """A change of names: `node` leaves the first place and appears at the second, either of which may be missing."""

    node: Node
    source: tuple[Node, str] | None
    target: tuple[Node, str] | None

    def touches(self, directory: Node) -> bool:
        return any(place is not None and place[0] is directory for place in (self.source, self.target))

    def apply(self) -> None:
        if self.source is not None:
            directory, name = self.source
            if directory.durable.get(name) is self.node:
                del directory.durable[name]
        if self.target is not None:
            directory, name = self.target
            directory.durable[name] = self.node


class SimulatedDisk:
    """A FileSystem over the directory `root`; what is in it already is durable. `cut_at`: the number of the change that
    does not happen any more.
    """

    def __init__(self, root: Path, cut_at: int = 0) -> None:
        self.root = root
        self.cut_at = cut_at
        self.count = 0
        self._disk = OsFileSystem()
        self._by_inode: dict[int, Node] = {}
        self._pending: list[Rename] = []
        root.mkdir(parents=True, exist_ok=True)
        self._tree = self._found(root)

    # -- the FileSystem ----------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        is_new = create and not os.path.exists(path)
        if is_new:
            self._step()
        fd = self._disk.open(path, create=create, writable=writable)
        if is_new:
            self._created(path, fd)
        return fd

    def append(self, fd: int, parts: Sequence[Bytes], position: int) -> int:
        self._step()
        return self._disk.append(fd, parts, position)

    def truncate(self, fd: int, size: int) -> None:
        self._step()
        node = self._of(fd)
        node.smallest = min(node.smallest, size)
        self._disk.truncate(fd, size)

    def allocate(self, fd: int, position: int, size: int) -> None:
        self._step()
        os.ftruncate(fd, max(os.fstat(fd).st_size, position + size))

    def map(self, fd: int, size: int) -> mmap.mmap:
        return self._disk.map(fd, size)

    def sync(self, fd: int) -> None:
        self._step()
        node = self._of(fd)
        node.synced = os.pread(fd, os.fstat(fd).st_size, 0)
        node.smallest = len(node.synced)

    def sync_path(self, path: str) -> None:
        if os.path.isdir(path):
            self.sync_dir(path)
        elif os.path.exists(path):
            fd = self._disk.open(path)
            try:
                self.sync(fd)
            finally:
                os.close(fd)

    def sync_dir(self, path: str) -> None:
        self._step()
        directory = self._find(path)
        if directory is not None:
            for change in [change for change in self._pending if change.touches(directory)]:
                change.apply()
                self._pending.remove(change)

    def rename(self, source: str, target: str) -> None:
        self._step()
        replaced = self._find(target)
        if replaced is not None and not replaced.is_dir:
            replaced.last = Path(target).read_bytes()
        self._disk.rename(source, target)
        old, new = self._place(source), self._place(target)
        node = old[0].names.pop(old[1])
        new[0].names[new[1]] = node
        self._pending.append(Rename(node, old, new))

    def unlink(self, path: str) -> None:
        if os.path.exists(path):
            self._step()
            self._removed(path, Path(path).read_bytes())
            self._disk.unlink(path)

    def make_dir(self, path: str) -> None:
        if os.path.isdir(path):
            return
        self.make_dir(os.path.dirname(path))
        self._step()
        os.mkdir(path)
        place = self._place(path)
        node = place[0].names[place[1]] = Node(is_dir=True)
        self._pending.append(Rename(node, None, place))

    def remove_tree(self, path: str) -> None:
        if not os.path.isdir(path):
            return
        for name in os.listdir(path):
            self.unlink(os.path.join(path, name))
        self._step()
        self._removed(path, None)
        os.rmdir(path)

    def replace_file(self, path: str, content: bytes, *, sync: bool = True) -> None:
        self.write_file(path + ".tmp", content, sync=sync)
        self.rename(path + ".tmp", path)
        if sync:
            self.sync_dir(os.path.dirname(path))

    def write_file(self, path: str, content: bytes, *, sync: bool = False) -> None:
        fd = self.open(path, create=True)
        try:
            if os.fstat(fd).st_size:
                self.truncate(fd, 0)
            if content:
                self.append(fd, [content], 0)
            if sync:
                self.sync(fd)
        finally:
            os.close(fd)

    def set_modified(self, path: str, modified_ns: int) -> None:
        self._disk.set_modified(path, modified_ns)

    def space(self, path: str) -> tuple[int, int]:
        return PLENTY

    # -- the power ---------------------------------------------------------------------------------

    def cut_power(self, rng: Random, target: Path) -> None:
        """Make `target` the directory that the next start finds."""
        in_order = rng.random() < 0.5  # as a journal writes them
        loss = rng.choice((0.03, 0.3, 0.9))
        lost: set[int] = set()
        for change in self._pending:
            if id(change.node) in lost or rng.random() < loss:
                if in_order:
                    break
                lost.add(id(change.node))
            else:
                change.apply()
        self._write_out(self._tree, target, self._contents(), rng)

    def _contents(self) -> dict[int, bytes]:
        """The content of every file that has a name, a part of which is durable."""
        found: dict[int, bytes] = {}

        def walk(directory: Node, path: Path) -> None:
            for name, node in directory.names.items():
                if node.is_dir:
                    walk(node, path / name)
                else:
                    found[id(node)] = (path / name).read_bytes()

        walk(self._tree, self.root)
        return found

    def _write_out(self, directory: Node, target: Path, contents: dict[int, bytes], rng: Random) -> None:
        target.mkdir()
        for name, node in directory.durable.items():
            if node.is_dir:
                self._write_out(node, target / name, contents, rng)
            else:
                newest = contents.get(id(node), node.last)
                assert newest is not None, f"{name} was removed without a word"
                (target / name).write_bytes(_what_is_left(node, newest, rng))

    # -- names -------------------------------------------------------------------------------------

    def _found(self, path: Path) -> Node:
        """What is there."""
        if path.is_dir():
            names = {each.name: self._found(each) for each in sorted(path.iterdir())}
            return Node(is_dir=True, names=names, durable=dict(names))
        content = path.read_bytes()
        node = self._by_inode[path.stat().st_ino] = Node(is_dir=False, synced=content, smallest=len(content))
        return node

    def _step(self) -> None:
        self.count += 1
        if self.count == self.cut_at:
            raise PowerCutError

    def _place(self, path: str) -> tuple[Node, str]:
        directory = self._find(os.path.dirname(path))
        assert directory is not None, path
        return directory, os.path.basename(path)

    def _find(self, path: str) -> Node | None:
        node: Node | None = self._tree
        for name in Path(path).relative_to(self.root).parts:
            node = None if node is None else node.names.get(name)
        return node

    def _of(self, fd: int) -> Node:
        return self._by_inode[os.fstat(fd).st_ino]

    def _created(self, path: str, fd: int) -> None:
        place = self._place(path)
        node = place[0].names[place[1]] = self._by_inode[os.fstat(fd).st_ino] = Node(is_dir=False)
        self._pending.append(Rename(node, None, place))

    def _removed(self, path: str, last: bytes | None) -> None:
        place = self._place(path)
        node = place[0].names.pop(place[1])
        node.last = last
        self._pending.append(Rename(node, place, None))


def _what_is_left(node: Node, newest: bytes, rng: Random) -> bytes:
    old = node.synced
    kind = rng.randrange(4)
    if newest == old or kind == 0:
        return old
    if kind == 1:
        return newest
    least, most = min(len(old), len(newest), node.smallest), max(len(old), len(newest))
    size = rng.choice((len(old), len(newest), least, rng.randint(least, most)))
    left = bytearray(old[:size].ljust(size, b"\0"))
    block = rng.choice(BLOCKS)
    for start in range(0, min(size, len(newest)), block):
        end = min(start + block, size, len(newest))
        kind = rng.randrange(3)
        if kind == 0:
            left[start:end] = newest[start:end]
        elif kind == 1 and start >= node.smallest:
            left[start:end] = bytes(end - start)
    return bytes(left)

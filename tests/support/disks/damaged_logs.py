"""Log directories to damage: copies of one that was closed cleanly, and what verification finds in them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from odradek.storage.disk.log_dir import CLEAN_SHUTDOWN_FILE
from odradek.storage.verification.findings import Finding
from odradek.storage.verification.log_directory import verify

CLEAN_DIRECTORY = Path(__file__).parents[2] / "golden" / "log_directories" / "clean"
"""Written by Apache Kafka: segments from 0, 37 and 128 on, the end is 139; transactions in the last one."""

LOG = "captured-0"
Damage = Callable[[Path], object]


def copy_of_clean(target: Path, *, is_clean: bool = True) -> Path:
    """A log directory of its own; without the marker of a clean stop, if asked for."""
    shutil.copytree(CLEAN_DIRECTORY, target)
    if not is_clean:
        (target / CLEAN_SHUTDOWN_FILE).unlink()
    return target


def findings_in(directory: Path) -> list[str]:
    """Each as a line, with paths from the directory on."""
    found: list[Finding] = []
    verify(str(directory), found.append)
    return [str(finding).replace(f"{directory}/", "") for finding in found]


def overwrite(name: str, position: int, data: bytes) -> Damage:
    """Put other bytes at a position, from the end if negative; a file grows if need be."""

    def damage(directory: Path) -> None:
        path = directory / name
        content = bytearray(path.read_bytes())
        at = position if position >= 0 else len(content) + position
        content[at : at + len(data)] = data
        path.write_bytes(content)

    return damage


def append(name: str, data: bytes) -> Damage:
    def damage(directory: Path) -> None:
        path = directory / name
        path.write_bytes((path.read_bytes() if path.exists() else b"") + data)

    return damage


def cut(name: str, size: int) -> Damage:
    def damage(directory: Path) -> None:
        path = directory / name
        path.write_bytes(path.read_bytes()[:size])

    return damage


def remove(pattern: str) -> Damage:
    def damage(directory: Path) -> None:
        for path in list(directory.glob(pattern)):
            path.unlink()

    return damage


def replace(name: str, old: str, new: str) -> Damage:
    def damage(directory: Path) -> None:
        path = directory / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return damage

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from spark_jobs.common.whole_file import write_whole


def test_a_file_is_replaced(tmp_path: Path) -> None:
    for content in (b"one", b"two"):
        write_whole(tmp_path / "page", content)
        assert (tmp_path / "page").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


def test_a_full_disk_leaves_the_file_before_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_whole(tmp_path / "page", b"one")

    def write_half(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", write_half)
    with pytest.raises(OSError, match="No space left on device"):
        write_whole(tmp_path / "page", b"the second page")
    assert [path.name for path in tmp_path.iterdir()] == ["page"]
    assert (tmp_path / "page").read_bytes() == b"one"

"""Creates the files of a segment in a thread of the I/O pool: creating a file waits for the journal of a busy disk.

A `.log` file that is preallocated gets its length and no blocks, as in Apache Kafka (FileRecords.open): a roll takes no
space of the disk.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from odradek.storage import log_files

if TYPE_CHECKING:
    from odradek.storage.config.log_config import LogConfig
    from odradek.storage.disk.file_system import FileSystem


def create_segment_files(directory: str, base_offset: int, config: LogConfig, fs: FileSystem) -> int:
    """Create the files that a new segment has, and return the descriptor of the `.log` file, which the caller owns.

    Raises: OSError; the files may be there then.
    """
    stem = os.path.join(directory, log_files.offset_name(base_offset, ""))
    fd = fs.open(stem + log_files.LOG_FILE_SUFFIX, create=True)
    try:
        if config.preallocate:
            fs.truncate(fd, config.segment_bytes)
        for suffix in (log_files.INDEX_FILE_SUFFIX, log_files.TIME_INDEX_FILE_SUFFIX):
            os.close(fs.open(stem + suffix, create=True))
    except OSError:
        os.close(fd)
        raise
    return fd

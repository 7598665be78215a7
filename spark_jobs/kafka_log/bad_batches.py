"""What happens to a batch that cannot be read: an error, or a count and one line at the end of a task."""

from __future__ import annotations

from spark_jobs.kafka_log.errors import CorruptLogFileError, warn


class BadBatches:
    """The mode FAILFAST raises at the first bad batch; PERMISSIVE leaves it out and counts it."""

    def __init__(self, permissive: bool) -> None:
        self._permissive = permissive
        self._first = ""
        self.count = 0

    def found(self, path: str, position: int, reason: object) -> None:
        """Raises: CorruptLogFileError in the mode FAILFAST."""
        line = f"{path}: the batch at byte {position} cannot be read: {reason}"
        if not self._permissive:
            raise CorruptLogFileError(f"{line} (mode=PERMISSIVE leaves such batches out)")
        self._first = self._first or line
        self.count += 1

    def report(self) -> None:
        """Write how many batches were left out, if any were."""
        if self.count:
            noun = "batch was" if self.count == 1 else "batches were"
            warn(f"{self.count} {noun} left out; the first: {self._first}")

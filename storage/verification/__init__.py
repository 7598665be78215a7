"""Verifies the files of logs without changing them, for `odradek verify`.

- `findings`: one problem found; `names`: the files of a log by kind, and unknown files
- `log_directory`: a directory of `log.dirs`: its meta.properties, its checkpoints, its logs
- `partition`: one log: its segments, producer snapshots and leader epochs
- `segment`: the batches of one segment, in one pass that also feeds the checks of its indexes
- `index_checks`, `transaction_check`, `epoch_check`: compare indexes and leader epochs with the batches

With the marker of a clean stop in a log directory, every file must be complete and correct. Without it, a broker may be
running there, or may have been killed: then the last segment of each log is *open*. Its log may end in a torn batch or
in zeros, its indexes may be preallocated, truncated, or point after the log end. Files that the next start rebuilds
(the end of the epoch file; snapshots and transaction indexes after the recovery point) may be missing.

A running broker changes files during the check: checkpoints are read before the logs whose ends they are compared with,
and findings in a segment that was deleted or replaced meanwhile are dropped.
"""

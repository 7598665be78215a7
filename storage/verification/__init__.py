"""What is wrong with the files of a log, found without changing any of them.

- `findings`: what is found; `names`: which files belong together, and which belong nowhere
- `log_directory`: one of `log.dirs`, its identity, its checkpoints, its logs
- `partition`: one log, segment by segment, its producer snapshots, its leader epochs
- `segment`: the batches of one segment, in one pass that the checks of its indexes follow
- `index_checks`, `transaction_check`, `epoch_check`: what is held against the batches

A directory is taken at its word. With the marker of a clean stop in it, every file is finished and has to be right.
Without, a broker may be at work there or have been killed: then the last segment of a log is *open*. Its log may end in
a torn batch or in zeros, its indexes may be preallocated, cut anywhere or behind the log, and what the next start
rebuilds (the end of the epoch file, snapshots and transaction indexes behind the recovery point) may be missing.

Files of a running broker change under the reader: checkpoints are read before logs and logs before their ends are
compared, and what is found in a segment that was deleted or replaced meanwhile is dropped.
"""

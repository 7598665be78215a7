"""Log compaction: which log, which records, and the run that rewrites segments."""

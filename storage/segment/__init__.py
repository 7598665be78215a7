"""The files of one segment: records, indexes, flushing."""

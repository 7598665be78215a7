"""One request between its arrival and its answer, and what watches it: the request log, observers, faults."""

"""Resources of the process: thread pool, worker processes, timer driver, logging; the refusal of a start."""

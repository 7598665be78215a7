"""What the process is given: threads, worker processes, time, logging; and how a start is refused."""

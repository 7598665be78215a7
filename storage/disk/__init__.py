"""The seam to the file system, log directories, checkpoint files, the protocol of the worker processes."""

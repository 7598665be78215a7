"""The data of brokers for tests: directories in memory, disks that fail when a test says so."""

"""What the test kit observes in a running broker: requests, groups, transactions, log lines, and waits for changes."""

"""Group (and transaction) coordinators: pure decisions over a replicated log."""

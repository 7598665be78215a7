"""Group coordinator and transaction coordinator: pure decisions over a replicated log."""

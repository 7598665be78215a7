"""Members of groups: joining, rebalances, leaving, sessions."""

"""Commands that administer a cluster: topics, reassign, elect-leaders, cluster."""

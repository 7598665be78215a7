"""What `compare_topics` is made of: options, pinned ranges, matching of records, their order, the report."""

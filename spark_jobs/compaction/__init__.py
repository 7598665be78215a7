"""What `audit_compaction` is made of: options, the latest record of each key, findings, savings, the report."""

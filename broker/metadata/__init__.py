"""What this broker knows of the cluster, and its own identity."""

"""What the jobs share: options, the connection to a cluster, the run of a job, streaming queries."""

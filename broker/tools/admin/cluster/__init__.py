"""The brokers of a cluster: who is alive, what they serve, what is on their disks."""

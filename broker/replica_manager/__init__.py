"""ReplicaManager and what only it uses."""

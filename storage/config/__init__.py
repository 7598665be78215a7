"""The configurations of topics, the cleaner and producer states."""

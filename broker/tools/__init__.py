"""Command-line tools: `dump_log` prints files as Apache Kafka does, `verify` checks them, `admin` is for clusters."""

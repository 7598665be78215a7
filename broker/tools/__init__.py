"""Commands that look into files: `dump_log` prints them as Apache Kafka does, `verify` says what is wrong with them."""

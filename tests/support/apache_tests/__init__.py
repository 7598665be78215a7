"""Apache Kafka's own integration tests, run as they were published, with Odradek in place of its broker.

A Java agent (`jvm/`) rewrites `kafka.server.KafkaServer` while it is loaded: its `startup` starts `odradek serve` with
the configuration it was given, on the ZooKeeper that the test has started, and its other methods ask the running
broker. `classes.txt` says for every class of those tests whether it runs, and if not, why.
"""

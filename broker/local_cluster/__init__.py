"""`odradek serve --brokers N`: a cluster on one machine, its brokers and their metadata service under one command."""

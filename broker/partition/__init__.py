"""One hosted partition as leader or follower, its ISR, and the table of hosted partitions."""

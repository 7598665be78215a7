"""What `consumer_lag` is made of: decoding of `__consumer_offsets`, lag and its trends, history, plots and the page."""

"""What `sessionize` is made of: its command line, the sessions as data frames, and the streaming query."""

"""The table of metrics: what each is called, what it means, and how it is read."""

"""The metrics of the broker, and the endpoint that serves them."""

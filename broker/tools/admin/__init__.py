"""Commands that administer a running cluster, in rooms of what they are about; `client` sends their requests."""

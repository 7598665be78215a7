"""ACLs, users that authenticate with SCRAM, and delegation tokens."""

"""ACLs, SCRAM credentials, delegation tokens."""

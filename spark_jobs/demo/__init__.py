"""The parts of `pipeline_demo`: clicks, child processes, and the steps from clicks to the page of the lag."""

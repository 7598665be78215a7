"""Time: the injected clock, the hierarchical timing wheel, and the purgatories that wait on both."""

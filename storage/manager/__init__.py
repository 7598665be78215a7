"""All logs of a broker: start, placement, moves between directories, periodic sweeps."""

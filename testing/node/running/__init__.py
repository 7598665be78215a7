"""A broker for tests on its event loop, its time, its links and its ports."""

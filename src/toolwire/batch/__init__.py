"""Many tasks: planned, run by hosts, resumed, reported."""

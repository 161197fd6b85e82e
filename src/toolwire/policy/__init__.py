"""Policy: whether a call may run."""

"""Policy: what a call may do."""

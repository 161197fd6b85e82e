"""Subagents: `run_agent` runs one in a session of its own, held to the policy of its caller."""

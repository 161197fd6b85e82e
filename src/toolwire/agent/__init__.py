"""The agent: approval and scheduling of calls, and turns."""

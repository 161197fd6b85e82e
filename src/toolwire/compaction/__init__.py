"""Shortens a conversation that no longer fits: outputs first, then a summary, then a digest."""

"""Editors: the agent behind the Agent Client Protocol."""

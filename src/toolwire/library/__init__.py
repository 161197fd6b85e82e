"""The agent for other programs: `from toolwire import Agent`."""

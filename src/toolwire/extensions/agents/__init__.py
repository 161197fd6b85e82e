"""Subagents: their definitions, built in and from files."""

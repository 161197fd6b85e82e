"""Prompting of a small model: few tools, short texts, constrained JSON."""

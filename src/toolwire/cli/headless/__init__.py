"""Headless runs: their output and exit codes."""

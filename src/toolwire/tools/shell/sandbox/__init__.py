"""Confinement of commands: what they may read, write and reach."""

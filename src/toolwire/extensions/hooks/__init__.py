"""Hooks of the settings and of other programs' files: definitions, processes, answers."""

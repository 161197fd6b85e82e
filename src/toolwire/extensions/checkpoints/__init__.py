"""Checkpoints: the files before a turn changed them, and the way back."""

"""Settings of other programs as ours: what is taken over, and what is not, with the reason."""

"""The project's own measurements: what reading a stream costs beside its peers and its floor."""

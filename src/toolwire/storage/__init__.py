"""State on disk: directories, private files and locks."""

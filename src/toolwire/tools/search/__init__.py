"""Finding files and lines: walks, globs, ignore files, linear-time patterns."""

"""Text files: reading, edits, encodings, and which paths a tool may touch."""

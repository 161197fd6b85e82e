"""Sessions in PostgreSQL: many machines, one writer for each session at a time."""

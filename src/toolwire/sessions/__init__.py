"""Sessions that survive: what was said and done, kept record by record and read again."""

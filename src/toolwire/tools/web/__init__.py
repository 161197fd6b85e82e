"""Pages from the web: checked addresses, bounded bodies, readable text."""

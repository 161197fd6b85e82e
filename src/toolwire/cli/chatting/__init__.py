"""A conversation on a plain terminal: lines in, text out, questions in between."""

"""Tools: typed functions with a declared effect."""

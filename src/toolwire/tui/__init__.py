"""The terminal app: printed blocks that never change, and a small live area below them."""

"""The companion extension of an IDE in whose terminal a chat runs."""

"""Bytes and text: what all wire formats share, without knowledge of vendors."""

"""Bytes and text: what every wire format shares, and no vendor's knowledge."""

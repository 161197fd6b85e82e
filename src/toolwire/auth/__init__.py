"""Credentials: where they come from, where they are stored, and logins that refresh them."""

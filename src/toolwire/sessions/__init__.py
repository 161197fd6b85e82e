"""Persistent sessions: events are stored record by record and replayed."""

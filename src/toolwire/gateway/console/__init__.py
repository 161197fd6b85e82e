"""The web console: its pages, its API, and the sessions that the gateway runs."""

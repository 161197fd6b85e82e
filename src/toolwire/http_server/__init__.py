"""A small strict HTTP/1.1 server: handlers see a request, and a way to answer it."""

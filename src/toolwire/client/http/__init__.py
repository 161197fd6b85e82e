"""HTTP/1.1 of our own: strict framing, bounded heads, keep-alive, no request sent twice.

Not here: HTTP/2, SOCKS, IDNA 2008, a limit on connections. Requests through a proxy go by aiohttp.
"""

"""Our own HTTP/1.1: strict framing, bounded heads, keep-alive, no request sent twice. Not
supported: HTTP/2, SOCKS, IDNA 2008, a limit on connections. Requests through a proxy use aiohttp.
"""

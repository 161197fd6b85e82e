"""MCP: servers as tools, and toolwire as a server. Loaded only where a server is configured."""

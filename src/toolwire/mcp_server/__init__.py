"""toolwire as an MCP server: any catalogue over stdio and HTTP, and the one of our own tools."""

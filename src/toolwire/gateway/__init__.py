"""The gateway: any client on any model, over HTTP."""

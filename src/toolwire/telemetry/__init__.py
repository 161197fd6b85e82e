"""Telemetry: agent events as OpenTelemetry's GenAI spans and metrics, and gemini-cli's records."""

"""The only place that talks HTTP to models: sending, retrying, recording, falling back."""

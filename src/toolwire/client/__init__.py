"""HTTP access to models: requests, retries, recordings and fallback."""

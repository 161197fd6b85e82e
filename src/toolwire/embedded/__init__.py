"""The embedded model: weights, engine, and prompting of small models."""

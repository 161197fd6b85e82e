"""The embedded model: its weights, its engine, and the prompting of small models."""

"""How well a model works: small tasks on generated projects, each with an outcome to check."""

"""Context of a conversation: system prompt, memory files, mentioned files, cache marks."""

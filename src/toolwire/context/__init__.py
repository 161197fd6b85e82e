"""What a model is given beside the conversation: prompt, notes, files, cache marks."""

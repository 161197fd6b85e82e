"""What users add to the agent with files of their own."""

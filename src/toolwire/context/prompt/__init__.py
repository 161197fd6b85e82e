"""The system prompt: ours, composed from the texts beside this file, or the user's own."""

from toolwire.context.prompt.compose import PromptFacts, SystemPrompt, chosen_prompt, system_prompt

__all__ = ["PromptFacts", "SystemPrompt", "chosen_prompt", "system_prompt"]

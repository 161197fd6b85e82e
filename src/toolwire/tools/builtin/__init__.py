"""The built-in tools: one file each, with its description for the model beside it."""

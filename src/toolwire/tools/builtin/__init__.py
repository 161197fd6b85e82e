"""The built-in tools: one file each, with the words for the model beside it."""

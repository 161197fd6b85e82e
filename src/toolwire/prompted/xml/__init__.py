"""Tool calls written as XML in the text of an answer."""

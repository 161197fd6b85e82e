"""One run without a person: what it prints, and the code it ends with."""

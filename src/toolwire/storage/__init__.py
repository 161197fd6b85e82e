"""Files that hold state: where they are, who may read them, and who may write them now."""

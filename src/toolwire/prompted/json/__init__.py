"""Tool calls written as one JSON object per answer."""

"""The agent: rulings on calls, their scheduling, and turns."""

"""Full-screen views of the terminal app."""

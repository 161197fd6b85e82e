"""The embedded model: weights fetched once, and llama.cpp inside this process."""

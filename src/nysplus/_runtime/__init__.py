"""Threads, progress, checkpoints and files: nothing here knows what is computed."""

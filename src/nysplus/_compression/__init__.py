"""A smaller model from a fitted one."""

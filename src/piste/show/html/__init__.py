"""Standalone pages and their parts."""

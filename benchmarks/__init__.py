"""Measurements: speed, memory, fidelity. Each module is a command that prints a table."""

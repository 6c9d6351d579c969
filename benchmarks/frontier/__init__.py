"""Fidelity against seconds: Piste, its peers, and who is best at which second."""

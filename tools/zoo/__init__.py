"""Training of the bundled models: ``python -m tools.zoo.train``."""

"""Language models: speed beside captum and ContextCite, and contexts with planted facts."""

"""Which architectures of transformers Piste explains: small random models of many, and a table."""

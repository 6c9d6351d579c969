"""How faithful explanations are: metrics, and the benchmark that runs them."""

"""All methods on the same examples: planning, running, stopping and going on."""

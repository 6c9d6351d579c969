"""White-box access: attention, gradients, relevance rules, and the state of a model."""

"""What must not change an explanation, and what must: seeds, equal texts, shuffled weights."""

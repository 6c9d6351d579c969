"""Language models as classifiers: a prompt with places for the input, and labels to choose from."""

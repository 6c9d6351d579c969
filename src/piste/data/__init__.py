"""Files in and out: tables, examples, rationales, explanations."""

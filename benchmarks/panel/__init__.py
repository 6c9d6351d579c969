"""The panel: real models that every default is chosen on, and two that are set aside."""

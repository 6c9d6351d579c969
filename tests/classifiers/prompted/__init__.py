"""Tests of prompted and generating language models."""

"""Models behind an OpenAI-compatible server: asked over HTTP, answering with label chances."""

"""The web page and the JSON interface under it: ``piste serve``."""

from piste.serve.app import create_app
from piste.serve.limits import Limits
from piste.serve.running import serve

__all__ = ["Limits", "create_app", "serve"]

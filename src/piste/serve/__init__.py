"""The web page and the JSON interface under it: ``piste serve``."""

from piste.serve.app import create_app
from piste.serve.launcher import serve
from piste.serve.request_limits import Limits

__all__ = ["Limits", "create_app", "serve"]

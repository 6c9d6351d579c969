"""The web page and the JSON interface under it: ``piste serve``."""

from typing import TYPE_CHECKING

from piste.registry import lazy_names

if TYPE_CHECKING:
    from piste.serve.app import create_app
    from piste.serve.launcher import serve
    from piste.serve.request_limits import Limits
else:  # the server answers before all of it is imported
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "piste.serve.app": ["create_app"],
            "piste.serve.launcher": ["serve"],
            "piste.serve.request_limits": ["Limits"],
        },
    )

__all__ = ["Limits", "create_app", "serve"]

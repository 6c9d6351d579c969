"""The one place that moves questions to models and answers back."""

from piste.engine.cache import AnswerCache
from piste.engine.engine import CacheOption, Engine, Progress, ProgressOption, opened

__all__ = ["AnswerCache", "CacheOption", "Engine", "Progress", "ProgressOption", "opened"]

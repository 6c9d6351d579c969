"""Adapters around things that classify."""

from piste.classifiers.base import Classifier
from piste.classifiers.function import TextFunction, TokenFunction
from piste.classifiers.loading import load
from piste.classifiers.text import TextClassifier

__all__ = ["Classifier", "TextClassifier", "TextFunction", "TokenFunction", "load"]

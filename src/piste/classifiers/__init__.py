"""Adapters around things that classify."""

from piste.classifiers.base import Classifier
from piste.classifiers.function import TextFunction, TokenFunction
from piste.classifiers.loading import load
from piste.classifiers.pixels import PixelFunction
from piste.classifiers.text import TextClassifier
from piste.classifiers.vision import ImageClassifier

__all__ = [
    "Classifier",
    "ImageClassifier",
    "PixelFunction",
    "TextClassifier",
    "TextFunction",
    "TokenFunction",
    "load",
]

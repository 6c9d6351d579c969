"""Adapters around things that classify."""

from piste.classifier import Classifier
from piste.classifiers.image.classifier import ImageClassifier
from piste.classifiers.image.function import PixelFunction
from piste.classifiers.loading import load
from piste.classifiers.text.classifier import TextClassifier
from piste.classifiers.text.function import TextFunction, TokenFunction

__all__ = [
    "Classifier",
    "ImageClassifier",
    "PixelFunction",
    "TextClassifier",
    "TextFunction",
    "TokenFunction",
    "load",
]

"""Trained policies: a catalogue that ships, and others on the Hugging Face hub. Each is a run, with a card."""

from evergait.zoo.card import card
from evergait.zoo.catalogue import catalogue, choice, get, pretrained
from evergait.zoo.hub import download, upload

__all__ = ["card", "catalogue", "choice", "download", "get", "pretrained", "upload"]

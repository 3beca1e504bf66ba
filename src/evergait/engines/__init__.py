"""Engines simulate episodes."""

"""Phases and their ledgers on disk."""

"""Ledgers → measures; seeds → intervals."""

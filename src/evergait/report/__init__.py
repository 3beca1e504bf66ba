"""Ledgers and policies → one self-contained HTML page, and pictures of single gaits. Nothing here trains."""

"""Our vectorised physics for planar robots."""

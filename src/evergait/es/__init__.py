"""Evolution strategies: returns → utilities, gradient → step."""

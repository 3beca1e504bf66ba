"""Any Gymnasium environment."""

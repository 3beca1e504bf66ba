"""Figures on paper, drawn from `analysis`."""

"""What a number means: returns → scores, ledgers → measures, seeds → intervals."""

"""What everything rests on: arrays, errors, files, counters."""

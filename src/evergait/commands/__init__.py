"""One file per command; each is a frozen dataclass of its flags with a `run` that returns the exit code."""

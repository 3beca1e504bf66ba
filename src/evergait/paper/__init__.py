"""The paper that this project reproduces: its numbers, its roles, its claims."""

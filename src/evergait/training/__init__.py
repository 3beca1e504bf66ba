"""Training of phases and runs, and what people see of it."""

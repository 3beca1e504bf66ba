"""The one exception that users see."""


class EvergaitError(Exception):
    """A mistake that the user can correct; its text says where it is, what was given and what would be right."""

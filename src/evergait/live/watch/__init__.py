"""A local page that follows trainings and studies by reading their files."""

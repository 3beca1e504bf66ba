"""Live pages: the engine in a browser (`evergait lab`) and a page that follows a training (`evergait watch`)."""

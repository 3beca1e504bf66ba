"""Show a page in a browser, where somebody can see it."""

import os
import sys
import webbrowser


def open_page(address: str) -> bool:
    """Open an address; false where there is no screen."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    return webbrowser.open(address)

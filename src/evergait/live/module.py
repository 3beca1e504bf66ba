"""The engine as WebAssembly: native/ compiled by scripts/wasm.py, packed, for pages that run it."""

import base64
import functools
import importlib.resources

FILES = importlib.resources.files("evergait") / "live"


@functools.cache
def packed_module() -> str:
    """The packed module in base64; pages unpack it themselves."""
    return base64.b64encode((FILES / "evergait.wasm.gz").read_bytes()).decode()


@functools.cache
def assets(*names: str) -> str:
    """Scripts or styles of this package, joined in order."""
    return "\n".join((FILES / "assets" / name).read_text() for name in names)

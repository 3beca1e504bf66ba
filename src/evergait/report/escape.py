"""Plain data inside a <script> element: autoescaping does not reach there, so the JSON itself must be harmless."""

import json
from typing import Any

from markupsafe import Markup

_DANGEROUS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "'": "\\u0027", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def script_json(data: Any) -> Markup:
    """JSON that can neither end its element nor start a comment in it.

    >>> script_json({"name": "</script>"})
    Markup('{"name":"\\\\u003c/script\\\\u003e"}')
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escaped in _DANGEROUS.items():
        text = text.replace(character, escaped)
    return Markup(text)  # noqa: S704 - everything that markup could be made of is escaped above

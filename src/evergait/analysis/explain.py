"""What a condition is, in words: what its method does, and in which settings it differs from most others."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from evergait.config import Config
from evergait.core.data import to_data
from evergait.methods import Method

IGNORED = ("stream", "tasks", "seed", "method")
"""Runs of one condition differ in the first three; the method is told on its own."""


def explain(configs: Mapping[str, Config]) -> dict[str, str]:
    """Condition → a sentence."""
    flat = {name: _flat(to_data(config)) for name, config in configs.items()}
    keys = dict.fromkeys(key for settings in flat.values() for key in settings if key.split(".")[0] not in IGNORED)
    values = {key: [_text(settings.get(key)) for settings in flat.values()] for key in keys}
    usual = {key: Counter(found).most_common(1)[0][0] for key, found in values.items()}
    told = {}
    for name, config in configs.items():
        mine = {key: _text(flat[name].get(key)) for key in keys}
        told[name] = "; ".join([method_words(config.method), *(f"{k} {v}" for k, v in mine.items() if v != usual[k])])
    return told


def method_words(method: Method) -> str:
    """The first line of what the method's classes say of themselves, and the options that it names or that were set."""
    parts = [Method.members[part] for part in method.name.split("+") if part in Method.members]
    words = " + ".join((part.__doc__ or part.name).splitlines()[0].rstrip(".") for part in parts) or method.name
    usual, mine = _flat(to_data(type(method)())), _flat(to_data(method))
    options = [k for k, v in mine.items() if not k.endswith("name") and (v != usual.get(k) or f"`{k}`" in words)]
    text = ", ".join(f"{option} {_text(mine[option])}" for option in options)
    return words.replace("`", "") + (f" ({text})" if text else "")


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in data.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found


def _text(value: Any) -> str:
    return {"True": "yes", "False": "no", "None": "none"}.get(str(value), str(value))

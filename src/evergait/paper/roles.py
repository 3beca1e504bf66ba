"""What a condition is in the paper's terms, told by its settings and not by its name."""

from dataclasses import dataclass, replace

from evergait.analysis.scales import settings
from evergait.analysis.study import Analysis
from evergait.config import Config
from evergait.methods import Multitask, Naive, Replay

PAPER_POPULATION = 768


@dataclass(frozen=True)
class Roles:
    """Conditions of a study by the part they play; empty where there is none. All differ in method and heads alone."""

    naive: str
    """Sequential ES with a shared head."""
    replay: tuple[str, ...]
    """Joint replay with a shared head, rising with the budget; of several with one budget, the first of the study."""
    distinct: str
    """Sequential ES with a head per task."""
    multitask: tuple[str, ...]

    @property
    def middle_replay(self) -> str:
        """The budget that stands for replay: the middle one; empty without replay."""
        return self.replay[len(self.replay) // 2] if self.replay else ""


def budget_share(config: Config) -> float:
    """Replay evaluations per evaluation on the current task; 0 for other methods."""
    return config.method.budget / (2 * config.pairs) if isinstance(config.method, Replay) else 0.0


def reference_condition(config: Config) -> str:
    """The paper's condition that has this method and these heads, up to the size of the population; else empty."""
    shared = config.policy.heads == "shared"
    if isinstance(config.method, Naive):
        return "shared" if shared else "distinct"
    if isinstance(config.method, Replay) and shared:
        return f"replay-{round(budget_share(config) * PAPER_POPULATION)}"
    return ""


def find_roles(analysis: Analysis) -> Roles:
    """Who is who among the conditions of a study; one that differs in more than method and heads plays no part."""
    configs = {name: analysis.config(name) for name in analysis.results.conditions}
    called: dict[str, list[str]] = {}
    for name, config in configs.items():
        called.setdefault(reference_condition(config), []).append(name)
    naive = called.get("shared", [""])[0]
    first = configs[naive] if naive else next(iter(configs.values()), Config())
    alike = {name for name, config in configs.items() if _but_heads(config) == _but_heads(first)}
    budgets = [next((n for n in names if n in alike), "") for role, names in called.items() if role[:6] == "replay"]
    return Roles(
        naive=naive,
        replay=tuple(sorted(filter(None, budgets), key=lambda name: budget_share(configs[name]))),
        distinct=next((name for name in called.get("distinct", []) if name in alike), ""),
        multitask=tuple(name for name, config in configs.items() if isinstance(config.method, Multitask)),
    )


def _but_heads(config: Config) -> Config:
    return settings(replace(config, policy=replace(config.policy, heads="shared")))

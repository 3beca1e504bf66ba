"""What a condition is in the paper's terms, told by its settings and not by its name."""

from dataclasses import dataclass

from evergait.config import Config
from evergait.methods import Multitask, Naive, Replay
from evergait.studies.results import Results

PAPER_POPULATION = 768


@dataclass(frozen=True)
class Roles:
    """Conditions of a study by the part they play; empty where there is none."""

    naive: tuple[str, ...]
    """Sequential ES with a shared head."""
    replay: tuple[str, ...]
    """Joint replay with a shared head, rising with the budget; of several with one budget, the first of the study."""
    distinct: tuple[str, ...]
    """Sequential ES with a head per task."""
    multitask: tuple[str, ...]

    @property
    def middle_replay(self) -> str:
        """The budget that stands for replay: the one nearest to the paper's 192 of 768; empty without replay."""
        return self.replay[len(self.replay) // 2] if self.replay else ""


def budget_share(config: Config) -> float:
    """The replay budget as a share of the population, whatever it counts; 0 for other methods."""
    return config.method.budget / (2 * config.pairs) if isinstance(config.method, Replay) else 0.0


def reference_condition(config: Config) -> str:
    """The paper's condition that has these settings, up to the size of the population; empty if it has none."""
    shared = config.policy.heads == "shared"
    if isinstance(config.method, Naive):
        return "shared" if shared else "distinct"
    if isinstance(config.method, Replay) and shared:
        return f"replay-{round(budget_share(config) * PAPER_POPULATION)}"
    return ""


def find_roles(results: Results) -> Roles:
    """Who is who among the conditions of a study."""
    configs = {entry.condition: entry.run.config for entry in reversed(results.entries)}

    def called(reference: str) -> tuple[str, ...]:
        return tuple(name for name in results.conditions if reference_condition(configs[name]) == reference)

    budgets: dict[str, str] = {}
    for name in results.conditions:
        budgets.setdefault(reference_condition(configs[name]), name)
    replay = [name for reference, name in budgets.items() if reference.startswith("replay-")]
    return Roles(
        naive=called("shared"),
        replay=tuple(sorted(replay, key=lambda name: budget_share(configs[name]))),
        distinct=called("distinct"),
        multitask=tuple(name for name in results.conditions if isinstance(configs[name].method, Multitask)),
    )

"""Which scale a study's returns are measured on."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from evergait.analysis.references import FINAL_EPISODES, measured_references
from evergait.analysis.study import Analysis
from evergait.config import Config
from evergait.methods import Naive
from evergait.scores.references import scale_of
from evergait.scores.scale import Source
from evergait.store.ledger import Ledger
from evergait.studies.results import Results

NAIVE = Naive()


def analyse_by_score(results: Results, references: Mapping[str, float]) -> Analysis:
    """One scale for every condition: a score means the same in every row."""
    if not results.entries:
        return Analysis(results, {})
    ledgers = [ledger for entry in results.entries for ledger in entry.run.ledgers]
    singles = [entry for entry in results.entries if entry.condition == "single"]
    own = single_task_source(results, settings(singles[0].run.config)) if singles else None
    scale = scale_of(ledgers, references, own)
    return Analysis(results, dict.fromkeys((entry.condition for entry in results.entries), scale))


def settings(config: Config) -> Config:
    """What two runs have in common if their first phases are the same training: all but stream, seed and method."""
    return replace(config, stream=(), tasks=(), seed=0, method=NAIVE)


def single_task_phases(results: Results, shared: Config) -> dict[str, dict[int, tuple[str, Ledger]]]:
    """Task → seed → name and ledger of the phase that learnt it alone; a stream's first phase is one."""
    found: dict[str, dict[int, tuple[str, Ledger]]] = {}
    for entry in sorted(results.entries, key=lambda entry: entry.condition != "single"):
        first = entry.run.ledgers[0]
        if len(first.learning) == 1 and settings(entry.run.config) == shared:
            phase = entry.run.phases[0].name if entry.run.phases else ""
            found.setdefault(first.learning[0], {}).setdefault(entry.seed, (phase, first))
    return found


def single_task_source(results: Results, shared: Config) -> Source:
    """R* of every task: the best of all seeds' final policies, over 50 episodes each where those were played."""
    phases = single_task_phases(results, shared)
    played = measured_references(results.path)
    names = [name for by_seed in phases.values() for name, _ in by_seed.values()]
    if names and all(name in played for name in names):
        best = {task: max(played[name] for name, _ in by_seed.values()) for task, by_seed in phases.items()}
        how = f"{FINAL_EPISODES} episodes each"
    else:
        best = {
            task: max(ledger.records[-1].mean(task) for _, ledger in by_seed.values())
            for task, by_seed in phases.items()
        }
        how = "their last evaluation"
    return f"{_seeds(phases.values())} single-task phases of this study ({how})", best


def _seeds(phases: Iterable[Mapping[int, object]]) -> str:
    n_seeds = max((len(by_seed) for by_seed in phases), default=1)
    return f"the best of {n_seeds} seeds' final policies in" if n_seeds > 1 else "the final policies of"

"""A run as it is shared, with a model card: what a policy is, what it returns, how to use it.

The card's head is data for the Hugging Face hub.
"""

import json
import math
from pathlib import Path
from statistics import fmean

from evergait.core.errors import EvergaitError
from evergait.core.files import sha256, write_atomically, write_json
from evergait.core.versions import in_words
from evergait.policy.layout import export_policy
from evergait.tasks.base import short
from evergait.tasks.robot_file import is_robot_file
from evergait.training.run import Run

CHOICE = "It is one run: another seed may end elsewhere."


def share(run: Run, folder: Path, name: str, choice: str = CHOICE) -> None:
    """A run's folder with its own phases only, with its card and the policy as one file."""
    if not run.is_done:
        raise EvergaitError(f"{run.path}: is not trained to its end; run the same `train` command again first")
    for task in run.policy.tasks:
        if is_robot_file(task):
            raise EvergaitError(
                f"{run.path}: its task {task.name} is a robot's file, which others do not have; "
                "only runs on tasks that Gymnasium knows by an id can be shared"
            )
    folder.mkdir(parents=True, exist_ok=True)
    config = run.config.to_toml().encode()
    write_atomically(folder / "config.toml", config)
    names = [phase.name for phase in run.phases]
    write_json(folder / "run.json", {"phases": names, "store": "phases", "config": sha256(config)})
    for phase in run.phases:
        phase.copy_to(folder / "phases" / phase.name)
    state = run.state()
    export_policy(folder / "policy.safetensors", run.policy, state.theta, state.statistics)
    write_atomically(folder / "README.md", card(run, name, choice).encode())


def final_returns(run: Run) -> dict[str, float]:
    """Mean return at the end of a run on each task that it learnt."""
    learnt = {task for ledger in run.ledgers for task in ledger.learning}
    last = run.ledger.records[-1]
    return {task: fmean(returns) for task, returns in last.returns.items() if task in learnt}


def card(run: Run, name: str, choice: str = CHOICE) -> str:
    """The README.md of a policy, with a sentence on how it was chosen."""
    returns, config, alias = final_returns(run), run.config, name.rpartition("/")[2]
    n_episodes = len(next(iter(run.ledger.records[-1].returns.values())))
    results = [
        {
            "task": {"type": "reinforcement-learning", "name": "return after the last task"},
            "dataset": {"type": task, "name": task},
            "metrics": [
                {
                    "type": "mean_reward",
                    "value": round(value, 1) if math.isfinite(value) else None,
                    "name": "mean return",
                }
            ],
        }
        for task, value in returns.items()
    ]
    head = {
        "library_name": "evergait",
        "pipeline_tag": "reinforcement-learning",
        "tags": ["evolution-strategies", "continual-learning", "mujoco", *returns],
        "model-index": [{"name": alias, "results": results}],
    }
    stages = [" + ".join(ledger.learning) for ledger in run.ledgers]
    rows = []
    for stage, ledger in zip(stages, run.ledgers, strict=True):
        last = ledger.records[-1]
        rows.append(f"| {stage} | " + " | ".join(_number(last.mean(task)) for task in returns) + " |")
    stream = f"{' → '.join(stages)}, one after the other. Against forgetting: `{config.method.name}`."
    trained = stream if len(stages) > 1 else f"{stages[0]}."
    untrained = ", ".join(short(task.name) for task in run.policy.tasks if task.name not in returns)
    trained += (
        f" Its layers for {untrained} are as they were drawn." if untrained and config.perturb == "active" else ""
    )
    parts = run.phases[-1].identity().get("versions", {})
    versions = {**run.phases[-1].progress().get("versions", {}), **parts}
    return f"""---
{json.dumps(head, indent=2, ensure_ascii=False)}
---

# {alias}

One policy ({run.policy.n_parameters:,} parameters), trained by evolution strategies on {trained}

Mean return over {n_episodes} episodes at the end of each phase, a row each:

| after | {" | ".join(short(task) for task in returns)} |
|:--|{"--:|" * len(returns)}
{chr(10).join(rows)}

## Use it

```console
evergait zoo {name} --out runs/{alias}
evergait show runs/{alias}
evergait play runs/{alias} --output gait.html
evergait verify runs/{alias}
```

`policy.safetensors` is the same policy for programs without evergait: layers by name, and in its header
how they are joined.

## How it was made

`config.toml` has every setting (seed {config.seed}); the same versions give the same bits, θ {run.theta_sha256[:16]}….
It was trained with {in_words(versions)}. {choice}
It controls simulated robots, and has seen nothing else: do not let it move a real one.
"""


def _number(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) else "undefined"

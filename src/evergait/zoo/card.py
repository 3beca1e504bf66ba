"""A model card: what a policy is, what it returns, how to use it. Its head is data for the Hugging Face hub."""

import json
import math

from evergait.core.versions import in_words
from evergait.tasks.base import short
from evergait.training.run import Run
from evergait.zoo.catalogue import final_returns


def card(run: Run, name: str) -> str:
    """The README.md of a policy."""
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
        "license": "apache-2.0",
        "pipeline_tag": "reinforcement-learning",
        "tags": ["evolution-strategies", "continual-learning", "mujoco", *returns],
        "model-index": [{"name": alias, "results": results}],
    }
    stages = [" + ".join(ledger.learning) for ledger in run.ledgers]
    rows = []
    for stage, ledger in zip(stages, run.ledgers, strict=True):
        last = ledger.records[-1]
        rows.append(f"| {stage} | " + " | ".join(_number(last.mean(task)) for task in returns) + " |")
    parts = run.phases[-1].identity().get("versions", {})
    versions = {**run.phases[-1].progress().get("versions", {}), **parts}
    return f"""---
{json.dumps(head, indent=2, ensure_ascii=False)}
---

# {alias}

One policy ({run.policy.n_parameters:,} parameters), trained by evolution strategies on one task after the other:
{" → ".join(stages)}. Against forgetting: `{config.method.name}`.

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
It was trained with {in_words(versions)}. It is one run: another seed may end elsewhere.
It controls simulated robots, and has seen nothing else: do not let it move a real one.
"""


def _number(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) else "undefined"

"""A run as one long table: python pandas_session.py"""

import pandas as pd

import evergait as eg

evaluation = eg.Evaluation(every=2, episodes=3, random_policies=2)
config = eg.Config(stream=("InvertedPendulum-v5", "Reacher-v5"), generations=4, pairs=8, evaluation=evaluation)
run = eg.train(config, "runs/pandas")  # or eg.load of any run, or of a study

table = pd.DataFrame(run.frame())
print(table.head())
curves = table.pivot_table(index=["stage", "generation"], columns="task", values="return", aggfunc="mean")
print(curves.round(1))
print(table.groupby("task")["length"].describe().round(1))

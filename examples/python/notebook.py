"""Trains and looks at the loss, as cells of a notebook: editors run each part after `# %%` alone.

    pip install troupe-0.1.0-py3-none-any.whl     # docs/python.md builds it
    export TROUPE_COORDINATOR=127.0.0.1:7000      # the line that `troupe up` prints
    export TROUPE_DATA=PREFIX                     # of PREFIX.bin and PREFIX.idx
    python notebook.py

notebook.ipynb has the same cells for Jupyter.
"""

# %% The job, as a mapping with the keys of a job file
from __future__ import annotations

import os
import uuid

import troupe

client = troupe.Client()
job = {
    "name": f"notebook-{uuid.uuid4().hex[:8]}",
    "model": {"pattern": "(AD)x2", "hidden_size": 64, "num_attention_heads": 4},
    "data": {"train": os.path.abspath(os.environ["TROUPE_DATA"])},
    "training": {"steps": 20, "sequence_length": 32, "global_batch_size": 8},
}

# %% What the planner makes of it
plan = client.plan(job)
print(f"{plan.parameters} parameters, {len(plan.ranks)} rank, {plan.model_flops_per_step:.3g} FLOP")

# %% Train, and collect the loss of each step
name = client.submit(job)
losses: dict[int, float] = {}
for update in client.watch(name):
    if isinstance(update, troupe.StepEvent):
        losses[update.step] = update.loss
    elif isinstance(update, troupe.JobEvent):
        print(update.event, update.message)
    else:
        print(name, update.state)

# %% The loss, drawn in characters
for step, loss in losses.items():
    print(f"{step:3} {loss:.4f} {'*' * round(10 * loss)}")

# %% What was measured, and under which conditions
receipt = client.receipt(name)
print(receipt["steady"]["tokens_per_second"], "tokens/s on", receipt["environment"]["devices"])

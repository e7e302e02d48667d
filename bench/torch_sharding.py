"""PyTorch's side of the sharding benchmark: two ranks with one thread each over Gloo, llama-124m,
DDP or FSDP2.

Prints one JSON object with the rate of each step. Variants: ddp-autocast (float32 weights, bf16
autocast), ddp-weights (bf16 weights), fsdp2 (every block sharded, bf16 parameters and float32
reductions).
"""

import argparse
import contextlib
import json
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

from torch_llama import SHAPES, Llama


def rank_main(rank, variant, batch, sequence, steps):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29556")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(1)
    shape = SHAPES["llama-124m"]
    model = Llama(shape)
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.02)
    cast = contextlib.nullcontext()
    if variant == "fsdp2":
        mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for block in model.blocks:
            fully_shard(block, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
    else:
        if variant == "ddp-weights":
            model = model.to(torch.bfloat16)
        else:
            cast = torch.autocast("cpu", torch.bfloat16)
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1,
                                  fused=variant != "fsdp2")
    tokens = torch.randint(0, shape["vocab"], (batch // 2, sequence + 1))
    seconds = []
    for _ in range(steps + 2):
        dist.barrier()
        start = time.perf_counter()
        with cast:
            loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        dist.barrier()
        seconds.append(time.perf_counter() - start)
    if rank == 0:
        print(json.dumps({"peer": "torch", "variant": variant, "ranks": 2,
                          "tokens_per_second": [batch * sequence / s for s in seconds[2:]]}),
              flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--variant", choices=("ddp-autocast", "ddp-weights", "fsdp2"),
                        required=True)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=256)
    parser.add_argument("--steps", type=int, default=4)
    a = parser.parse_args()
    mp.spawn(rank_main, args=(a.variant, a.batch, a.sequence, a.steps), nprocs=2)

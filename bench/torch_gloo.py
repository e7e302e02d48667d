"""PyTorch's side of the collective benchmark: all-reduce of float32 between two ranks over Gloo on
this host."""

import argparse
import json
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank_main(rank, sizes):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29555")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    for size in sizes:
        data = torch.ones(size // 4)
        repeats = 200 if size < 1 << 20 else 9
        times = []
        for i in range(repeats + 3):
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(data)
            if i >= 3:
                times.append(time.perf_counter() - start)
        if rank == 0:
            times.sort()
            print(json.dumps({"peer": "torch-gloo", "operation": "all_reduce", "ranks": 2,
                              "bytes": size, "median_seconds": times[len(times) // 2]}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="64,67108864")
    mp.spawn(rank_main, args=([int(s) for s in parser.parse_args().sizes.split(",")],), nprocs=2)

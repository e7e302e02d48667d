"""PyTorch's side of the checkpoint benchmark: DCP saves the state of llama-124m with AdamW.

Each line on stdin names a command; the answer is its seconds:
  save     torch.distributed.checkpoint.save, then fsync of every file and of the directory
  async    the time for which async_save blocks the caller; the wait for its write is not measured
  load     torch.distributed.checkpoint.load of a saved state, after dropping it from the page cache
"""

import argparse
import os
import pathlib
import shutil
import sys
import time
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

from torch_llama import SHAPES, Llama

warnings.filterwarnings("ignore")


def sync(folder):
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def drop_from_cache(folder):
    for path in folder.rglob("*"):
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory", type=pathlib.Path, required=True)
    directory = parser.parse_args().directory
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29556")
    dist.init_process_group("gloo", rank=0, world_size=1)  # async_save requires one
    state = {}
    for name, weight in Llama(SHAPES["llama-124m"]).state_dict().items():
        for kind in ("weight", "exp_avg", "exp_avg_sq"):
            state[f"{kind}.{name}"] = torch.randn_like(weight)
    kept = directory / "dcp-kept"
    shutil.rmtree(kept, ignore_errors=True)
    dcp.save(state, checkpoint_id=str(kept), process_group=dist.group.WORLD)
    sync(kept)
    print("ready", flush=True)
    for i, line in enumerate(sys.stdin):
        folder = directory / f"dcp-{i}"
        command = line.strip()
        if command == "load":
            drop_from_cache(kept)
        start = time.perf_counter()
        if command == "save":
            dcp.save(state, checkpoint_id=str(folder))
            sync(folder)
        elif command == "async":
            future = dcp.async_save(state, checkpoint_id=str(folder))
        elif command == "load":
            dcp.load(state, checkpoint_id=str(kept))
        else:
            sys.exit(f"torch_dcp: no command '{command}'")
        seconds = time.perf_counter() - start
        if command == "async":
            future.result()
        shutil.rmtree(folder, ignore_errors=True)
        print(f"{seconds:.6f}", flush=True)
    shutil.rmtree(kept, ignore_errors=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

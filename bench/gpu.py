"""Benchmarks of a GPU with PyTorch in the same run, for a machine with a GPU, Python with PyTorch,
and our build/cuda-kernels/bin (docs/cuda.md). Prints one JSON line per result.

  python3 bench/gpu.py [train] [float8] [kernels]     default: all three; each takes minutes
      [--bin DIR] [--python PYTHON] [--models llama-124m,llama-1b] [--tuning-cache DIRECTORY]
      [--quick]

Both sides use PyTorch's own cuBLASLt and cuDNN if these came with it as packages. Ours and the
peers run alternately, since memory holds one at a time; ours runs first and last. Exits with 77 and
the reason if no GPU can be used.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = {"llama-124m": (64, 1024), "llama-1b": (8, 2048)}  # samples per step, tokens per sample
# Query heads, key-value heads, head size.
HEADS = {"llama-124m": (12, 12, 64), "llama-1b": (32, 8, 64), "llama-8b": (32, 8, 128)}
# The variants that a user of PyTorch would try: attention by each back end, with kernels launched
# one by one or with CUDA graphs.
PEERS = [("autocast", "cudnn", "default"), ("autocast", "flash", "default"),
         ("weights", "cudnn", "default"), ("autocast", "cudnn", "reduce-overhead"),
         ("autocast", "cudnn", "max-autotune-no-cudagraphs")]
LIMIT_SECONDS = 400  # for each command
SKIPPED = 77


def show(record):
    print(json.dumps(record), flush=True)


def note(text):
    print(f"gpu: {text}", file=sys.stderr, flush=True)


def environment(python):
    """Returns this process's environment with the libraries of NVIDIA's packages next to PyTorch
    first."""
    script = ("import glob, importlib.util as u; found = u.find_spec('nvidia'); "
              "print(*(d for p in (found.submodule_search_locations if found else []) for d in "
              "sorted(glob.glob(p + '/*/lib'))), "
              "sep=':')")
    libraries = subprocess.run([python, "-c", script], capture_output=True, text=True,
                               check=True).stdout.strip()
    paths = [path for path in (libraries, os.environ.get("LD_LIBRARY_PATH", "")) if path]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(paths)} if paths else dict(os.environ)


def ours(a, *arguments):
    """Returns the JSON lines of one run of our bench."""
    command = [str(a.bin / "troupe-kernels-bench"), *map(str, arguments), "--tuning-cache",
               str(a.tuning_cache)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS,
                          env=a.environment)
    if done.returncode == SKIPPED:
        note(done.stdout.strip())
        sys.exit(SKIPPED)
    if done.returncode != 0:
        sys.exit(f"gpu: {' '.join(command)} ended with "
                 f"{done.returncode}: {done.stderr.strip()[-2000:]}")
    if done.stderr.strip():
        note(done.stderr.strip())
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def our_rate(a, model, *arguments):
    batch, sequence = MODELS[model]
    steps = 13 if a.quick else 33
    record = ours(a, "--train", model, "--batch", batch, "--sequence", sequence, "--steps", steps,
                  *arguments)[-1]
    show(record)
    return record["tokens_per_second"]


def peer_rate(a, model, precision, attention, mode):
    """Returns tokens/s of one variant of PyTorch; None if it does not run."""
    batch, sequence = MODELS[model]
    command = [a.python, str(ROOT / "bench/torch_llama.py"), "--model", model, "--batch",
               str(batch), "--sequence", str(sequence), "--device", "cuda", "--precision",
               precision, "--attention", attention, "--compile", "--mode",
               mode, "--steps", "5" if a.quick else "10"]
    record = {"bench": "train", "who": "torch.compile", "model": model,
              "tokens": f"{batch}x{sequence}",
              "precision": precision, "attention": attention, "mode": mode}
    start = time.monotonic()
    try:
        done = subprocess.run(command, input="\n\n\n", capture_output=True, text=True,
                              timeout=LIMIT_SECONDS)
        answers = done.stdout.split()
        failed = done.returncode != 0 or len(answers) != 4
        reason = done.stderr.strip().rpartition("\n")[2] if failed else ""
    except subprocess.TimeoutExpired:
        reason = f"ended after {LIMIT_SECONDS} s"
    if reason:
        show({**record, "skipped": reason})
        return None
    rate = batch * sequence / statistics.median(map(float, answers[1:]))
    show({**record, "tokens_per_second": round(rate),
          "seconds_in_all": round(time.monotonic() - start)})
    return rate


def train(a):
    for model in a.models:
        mine = [our_rate(a, model)]
        peers = [peer_rate(a, model, *peer) for peer in (PEERS[:2] if a.quick else PEERS)]
        mine.append(our_rate(a, model))
        if any(peers):
            best = max(rate for rate in peers if rate)
            show({"comparison": "train", "model": model,
                  "times_the_best_torch": [round(rate / best, 3) for rate in mine]})


def float8(a):
    for model in a.models:
        wide = our_rate(a, model)
        for recipe in ("current", "delayed", "blockwise"):
            narrow = our_rate(a, model, "--float8", recipe)
            show({"comparison": "float8", "model": model, "recipe": recipe,
                  "times_bfloat16": round(narrow / wide, 3)})
    # The time of one llama-8b layer: half of what two additional layers add to a step.
    seconds = {}
    for recipe in ("none", "current", "delayed", "blockwise"):
        of_step = [ours(a, "--train", "llama-8b", "--pattern", f"(AD)x{layers}", "--batch", 4,
                        "--sequence", 2048, "--steps", 13, "--float8", recipe)[-1]["seconds"]
                   for layers in (1, 3)]
        seconds[recipe] = (of_step[1] - of_step[0]) / 2
        show({"bench": "layer", "model": "llama-8b", "tokens": "4x2048", "float8": recipe,
              "seconds": seconds[recipe]})
        if recipe != "none":
            show({"comparison": "float8", "model": "a layer of llama-8b", "recipe": recipe,
                  "times_bfloat16": round(seconds["none"] / seconds[recipe], 3)})


def show_head(records, vocabulary):
    """Shows the time of the head and its loss relative to their matmuls alone."""
    matmuls = others = 0.0
    for record in records:
        is_timed = record.get("bench") == "kernels" and "seconds" in record
        if is_timed and str(vocabulary) in record["inputs"]:
            if record["kernel"].startswith("matmul"):
                matmuls += record["seconds"]
            elif record["kernel"].startswith("softmax"):
                others += record["seconds"]
    if matmuls > 0:
        show({"comparison": "head", "vocabulary": vocabulary,
              "times_the_matmuls": round((matmuls + others) / matmuls, 3)})


def kernels(a):
    for model, (batch, sequence) in {**{model: MODELS[model] for model in a.models},
                                     "llama-8b": (8, 2048)}.items():
        heads, kv_heads, width = HEADS[model]
        records = ours(a, "--model", model, "--batch", batch, "--sequence", sequence)
        for record in records:
            show({"model": model, **record})
        show_head(records, 50304 if model == "llama-124m" else 128256)
        peers = subprocess.run([a.python, str(ROOT / "bench/torch_kernels.py"), "--batch",
                                str(batch), "--sequence", str(sequence), "--heads", str(heads),
                                "--kv-heads", str(kv_heads), "--width", str(width)],
                               capture_output=True, text=True, timeout=LIMIT_SECONDS)
        lines = [json.loads(line) for line in peers.stdout.splitlines() if line.startswith("{")]
        for line in lines:
            show({"model": model, **line})
        if peers.returncode != 0:
            note(f"PyTorch's kernels ended with {peers.returncode}: {peers.stderr.strip()[-1000:]}")
        for which in ("forward", "gradient"):
            mine = [min(r["library_seconds"], r["own_seconds"]) for r in records
                    if r.get("bench") == "attention" and r.get("pass") == which]
            theirs = [line[f"{which}_seconds"] for line in lines
                      if line["kernel"] == "attention" and f"{which}_seconds" in line]
            if mine and theirs:
                show({"comparison": "attention", "model": model, "pass": which,
                      "times_the_best_torch": round(min(theirs) / mine[0], 3)})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=["train", "float8", "kernels"])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/cuda-kernels/bin")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS))
    parser.add_argument("--tuning-cache", type=pathlib.Path, default=ROOT / "build/gpu-tuning")
    parser.add_argument("--quick", action="store_true", help="fewer steps and peers")
    a = parser.parse_args()
    parts = {"train": train, "float8": float8, "kernels": kernels}
    for part in a.parts:
        if part not in parts:
            sys.exit(f"gpu: no part '{part}': one of {', '.join(parts)}")
    for model in a.models:
        if model not in MODELS:
            sys.exit(f"gpu: no model '{model}': one of {', '.join(MODELS)}")
    a.environment = environment(a.python)
    a.tuning_cache.mkdir(parents=True, exist_ok=True)
    for part in a.parts:
        parts[part](a)


if __name__ == "__main__":
    main()

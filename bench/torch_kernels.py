"""PyTorch's side of the GPU kernel benchmark, one JSON line each: attention by its back ends,
RMSNorm by torch.compile, a copy."""

import argparse
import json
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import sdpa_kernel

from torch_llama import BACKENDS


def seconds_of(call, device):
    """Returns the seconds of one call in a series; the median of five series."""
    def repeat(count):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        if device == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / count

    repeat(3)
    count = max(1, min(200, int(0.05 / max(repeat(1), 1e-6))))
    return sorted(repeat(count) for _ in range(5))[2]


def show(**record):
    print(json.dumps({"bench": "torch_kernels", **record}), flush=True)


def attention(a):
    for name, backend in BACKENDS.items():
        q = torch.randn(a.batch, a.heads, a.sequence, a.width, device=a.device,
                        dtype=torch.bfloat16, requires_grad=True)
        k, v = (torch.randn(a.batch, a.kv_heads, a.sequence, a.width, device=a.device,
                            dtype=torch.bfloat16,
                            requires_grad=True) for _ in range(2))
        try:
            with sdpa_kernel(backend):
                def forward():
                    return F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                          enable_gqa=a.heads != a.kv_heads)

                out = forward()
                gradient = torch.randn_like(out)
                of_forward = seconds_of(forward, a.device)
                of_gradient = seconds_of(lambda: torch.autograd.grad(
                    out, (q, k, v), gradient, retain_graph=True), a.device)
        except RuntimeError as error:
            show(kernel="attention", backend=name, skipped=str(error).splitlines()[0])
            continue
        show(kernel="attention", backend=name, forward_seconds=of_forward,
             gradient_seconds=of_gradient)


def rms_norm(a):
    rows, hidden = a.batch * a.sequence, a.heads * a.width
    x = torch.randn(rows, hidden, device=a.device, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.ones(hidden, device=a.device, dtype=torch.bfloat16, requires_grad=True)
    norm = torch.compile(lambda: F.rms_norm(x, (hidden,), weight, 1e-5))
    out = norm()
    gradient = torch.randn_like(out)
    with torch.no_grad():
        of_forward = seconds_of(norm, a.device)
    of_gradient = seconds_of(lambda: torch.autograd.grad(out, (x, weight), gradient,
                                                         retain_graph=True), a.device)
    show(kernel="rms_norm", rows=rows, hidden=hidden, forward_seconds=of_forward,
         forward_gigabytes_per_second=4e-9 * rows * hidden / of_forward,
         gradient_seconds=of_gradient,
         gradient_gigabytes_per_second=6e-9 * rows * hidden / of_gradient)


def copy(a):
    source = torch.empty(a.copy_bytes, dtype=torch.uint8, device=a.device)
    target = torch.empty_like(source)
    show(kernel="copy",
         gigabytes_per_second=2e-9 * a.copy_bytes / seconds_of(lambda: target.copy_(source),
                                                               a.device))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--sequence", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--kv-heads", type=int, default=12)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--copy-bytes", type=int, default=1 << 30)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    a = parser.parse_args()
    copy(a)
    rms_norm(a)
    attention(a)


if __name__ == "__main__":
    main()

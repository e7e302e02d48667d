"""PyTorch's side of the step benchmark: a Llama-style decoder as a PyTorch user would write it for
speed.

Each line on stdin requests --steps training steps (forward, backward, clip, fused AdamW), one by
default; the answer is the seconds of one. Variants: float32, autocast (bf16), weights (bf16
weights); each eager or compiled.
"""

import argparse
import contextlib
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}

SHAPES = {"llama-124m": dict(hidden=768, layers=12, heads=12, kv_heads=12, ffn=2048, vocab=50304),
          "llama-1b": dict(hidden=2048, layers=16, heads=32, kv_heads=8, ffn=8192, vocab=128256),
          "tiny": dict(hidden=256, layers=4, heads=8, kv_heads=4, ffn=704, vocab=259)}


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class Block(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads, self.kv_heads, self.dim = s["heads"], s["kv_heads"], s["hidden"] // s["heads"]
        self.norm1 = nn.RMSNorm(s["hidden"], eps=1e-5)
        self.norm2 = nn.RMSNorm(s["hidden"], eps=1e-5)
        self.qkv = nn.Linear(s["hidden"], (self.heads + 2 * self.kv_heads) * self.dim, bias=False)
        self.out = nn.Linear(self.heads * self.dim, s["hidden"], bias=False)
        self.gate_up = nn.Linear(s["hidden"], 2 * s["ffn"], bias=False)
        self.down = nn.Linear(s["ffn"], s["hidden"], bias=False)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(
            [self.heads * self.dim, self.kv_heads * self.dim, self.kv_heads * self.dim], dim=-1)
        q = rotate(q.view(b, t, self.heads, self.dim).transpose(1, 2), cos, sin)
        k = rotate(k.view(b, t, self.kv_heads, self.dim).transpose(1, 2), cos, sin)
        v = v.view(b, t, self.kv_heads, self.dim).transpose(1, 2)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                           enable_gqa=self.heads != self.kv_heads)
        x = x + self.out(o.transpose(1, 2).reshape(b, t, -1))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embed = nn.Embedding(s["vocab"], s["hidden"])
        self.blocks = nn.ModuleList(Block(s) for _ in range(s["layers"]))
        self.norm = nn.RMSNorm(s["hidden"], eps=1e-5)
        self.dim = s["hidden"] // s["heads"]

    def forward(self, tokens, targets):
        t = tokens.shape[1]
        inverse = 10000.0 ** (-torch.arange(0, self.dim, 2, dtype=torch.float32,
                                            device=tokens.device) / self.dim)
        angles = torch.outer(torch.arange(t, dtype=torch.float32, device=tokens.device), inverse)
        x = self.embed(tokens)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        logits = F.linear(self.norm(x), self.embed.weight)  # tied
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="llama-124m")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=256)
    parser.add_argument("--precision", choices=["float32", "autocast", "weights"],
                        default="float32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--mode", help="of torch.compile", default="default")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--attention", choices=["any", *BACKENDS], default="any")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    a = parser.parse_args()

    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    shape = SHAPES[a.model]
    with torch.device(a.device):
        model = Llama(shape)
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.02)
    if a.precision == "weights":
        model = model.to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1,
                                  fused=True)
    forward = torch.compile(model, mode=a.mode) if a.compile else model
    casts = a.precision == "autocast"
    cast = torch.autocast(a.device, torch.bfloat16) if casts else contextlib.nullcontext()
    tokens = torch.randint(0, shape["vocab"], (a.batch, a.sequence + 1), device=a.device)

    def attention():
        if a.attention == "any":
            return contextlib.nullcontext()
        return sdpa_kernel(BACKENDS[a.attention])

    def step():
        with cast, attention():
            loss = forward(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    for _ in range(3):
        step().item()
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        for _ in range(a.steps):
            loss = step()
        loss.item()  # waits for the GPU
        print((time.perf_counter() - start) / a.steps, flush=True)


if __name__ == "__main__":
    main()

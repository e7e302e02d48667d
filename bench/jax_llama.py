"""JAX's side of the benchmark of XLA: a training step of a Llama-style decoder as a JAX user would
write it for speed, in one jitted function whose state is donated.

With --output FOLDER it writes the step as StableHLO (step.mlir) and its arguments (arguments.txt,
one line for each; bench/module_step.h), so that another program can run it. Otherwise it runs the
step in jaxlib: each line on stdin requests one, and the answer is its seconds.
"""

import argparse
import os
import pathlib
import sys
import time

SHAPES = {"llama-124m": dict(hidden=768, layers=12, heads=12, ffn=2048, vocab=50304),
          "tiny": dict(hidden=256, layers=4, heads=8, ffn=704, vocab=259)}
BETA1, BETA2, EPS, DECAY, MAX_NORM, RATE = 0.9, 0.95, 1e-8, 0.1, 1.0, 3e-4


def parameter_names(layers):
    """Returns, for each parameter, its kind and the Hugging Face tensors that it consists of."""
    names = {"embed": ("parameter", ["model.embed_tokens.weight"]),
             "norm": ("parameter", ["model.norm.weight"])}
    for layer in range(layers):
        prefix = f"model.layers.{layer}."
        attention = [f"{prefix}self_attn.{part}_proj.weight" for part in "qkv"]
        mlp = [f"{prefix}mlp.{part}_proj.weight" for part in ("gate", "up")]
        names |= {f"{layer}.norm1": ("parameter", [prefix + "input_layernorm.weight"]),
                  f"{layer}.norm2": ("parameter", [prefix + "post_attention_layernorm.weight"]),
                  f"{layer}.qkv": ("transposed", attention),
                  f"{layer}.out": ("transposed", [prefix + "self_attn.o_proj.weight"]),
                  f"{layer}.gate_up": ("transposed", mlp),
                  f"{layer}.down": ("transposed", [prefix + "mlp.down_proj.weight"])}
    return names


def parameter_shapes(s):
    shapes = {"embed": (s["vocab"], s["hidden"]), "norm": (s["hidden"],)}
    for layer in range(s["layers"]):
        shapes |= {f"{layer}.norm1": (s["hidden"],), f"{layer}.norm2": (s["hidden"],),
                   f"{layer}.qkv": (s["hidden"], 3 * s["hidden"]),
                   f"{layer}.out": (s["hidden"], s["hidden"]),
                   f"{layer}.gate_up": (s["hidden"], 2 * s["ffn"]),
                   f"{layer}.down": (s["ffn"], s["hidden"])}
    return shapes


def apply_adamw(jax, params, first, second, count, grads):
    """Returns parameters, moments and the number of steps after a step of AdamW with clipping."""
    jnp = jax.numpy
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
    clip = jnp.minimum(1.0, MAX_NORM / (norm + 1e-6))
    count = count + 1
    correction1 = 1 - BETA1 ** count.astype(jnp.float32)
    correction2 = 1 - BETA2 ** count.astype(jnp.float32)

    def update(p, m, v, g):
        g = g * clip
        m = BETA1 * m + (1 - BETA1) * g
        v = BETA2 * v + (1 - BETA2) * g * g
        decayed = p * (1 - RATE * DECAY) if p.ndim > 1 else p
        move = RATE / correction1 * m / (jnp.sqrt(v / correction2) + EPS)
        return decayed - move, m, v

    new = {name: update(params[name], first[name], second[name], grads[name])
           for name in params}
    params, first, second = ({name: parts[i] for name, parts in new.items()}
                             for i in range(3))
    return params, first, second, count


def make_step(jax, s, dtype, document):
    jnp = jax.numpy
    heads, dim = s["heads"], s["hidden"] // s["heads"]

    def rms_norm(x, w):
        wide = x.astype(jnp.float32)
        scale = jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-5)
        return (wide * scale * w).astype(x.dtype)

    def rotate(x, cos, sin):
        a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
        turned = jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
        return turned.astype(x.dtype)

    def block(params, layer, x, cos, sin, mask):
        def get(name):
            return params[f"{layer}.{name}"]
        batch, tokens, hidden = x.shape
        qkv = rms_norm(x, get("norm1")) @ get("qkv").astype(dtype)
        q, k, v = (part.reshape(batch, tokens, heads, dim) for part in jnp.split(qkv, 3, axis=-1))
        mixed = jax.nn.dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v,
                                             mask=mask, is_causal=True)
        x = x + mixed.reshape(batch, tokens, hidden) @ get("out").astype(dtype)
        gate, up = jnp.split(rms_norm(x, get("norm2")) @ get("gate_up").astype(dtype), 2, axis=-1)
        return x + (jax.nn.silu(gate) * up) @ get("down").astype(dtype)

    def loss_of(params, tokens, targets):
        length = tokens.shape[1]
        position = jnp.arange(length)
        mask = None
        if document:
            same = position[:, None] // document == position[None, :] // document
            mask = same[None, None]
            position = position % document
        inverse = 10000.0 ** (-jnp.arange(0, dim, 2, dtype=jnp.float32) / dim)
        angles = jnp.outer(position.astype(jnp.float32), inverse)[None, :, None, :]
        cos, sin = jnp.cos(angles), jnp.sin(angles)
        table = params["embed"].astype(dtype)
        x = table[tokens]
        for layer in range(s["layers"]):
            x = block(params, layer, x, cos, sin, mask)
        logits = (rms_norm(x, params["norm"]) @ table.T).astype(jnp.float32)
        chosen = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - chosen)

    def step(params, first, second, count, tokens, targets):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens, targets)
        params, first, second, count = apply_adamw(jax, params, first, second, count, grads)
        return params, first, second, count, loss

    return jax.jit(step, donate_argnums=(0, 1, 2, 3))


def write_module(jax, step, arguments, names, folder):
    """Writes the module, and a line for each of its arguments in their order."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "step.mlir").write_text(step.lower(*arguments).as_text())
    lines = []
    leaves, _ = jax.tree_util.tree_flatten_with_path(arguments)
    for path, leaf in leaves:
        group = path[0].idx
        contents, tensors = "zeros", []
        if group == 0:
            contents, tensors = names[path[1].key]
        elif group > 3:
            contents = ("tokens", "targets")[group - 4]
        dims = ",".join(str(extent) for extent in leaf.shape) or "-"
        dtype = {"float32": "f32", "int32": "i32"}[str(leaf.dtype)]
        lines.append(f"{dtype} {dims} {contents} {'+'.join(tensors)}".rstrip())
    (folder / "arguments.txt").write_text("".join(line + "\n" for line in lines))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=list(SHAPES), default="llama-124m")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=256)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--document", type=int, help="length of the documents of a sample")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=pathlib.Path)
    a = parser.parse_args()

    os.environ["NPROC"] = str(a.threads)  # jaxlib reads it when it makes its client
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import numpy

    s = SHAPES[a.model]
    shapes = parameter_shapes(s)
    names = parameter_names(s["layers"])
    step = make_step(jax, s, jax.numpy.dtype(a.dtype), a.document)
    draw = numpy.random.default_rng(1)
    rows = (a.batch, a.sequence)

    def initial(shape):
        if len(shape) == 1:
            return numpy.ones(shape, numpy.float32)
        return (0.02 * draw.standard_normal(shape, numpy.float32)).astype(numpy.float32)

    def zeros():
        return {name: numpy.zeros(shape, numpy.float32) for name, shape in shapes.items()}

    state = ({name: initial(shape) for name, shape in shapes.items()}, zeros(), zeros(),
             numpy.int32(0))
    data = tuple(draw.integers(0, s["vocab"], rows, numpy.int32) for _ in range(2))
    if a.output:
        write_module(jax, step, (*state, *data), names, a.output)
        return
    for _ in range(2):
        *state, loss = step(*state, *data)
    loss.block_until_ready()
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        *state, loss = step(*state, *data)
        loss.block_until_ready()
        print(f"{time.perf_counter() - start:.6f}", flush=True)


if __name__ == "__main__":
    main()

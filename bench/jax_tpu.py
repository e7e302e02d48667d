"""JAX's side of the comparison of programs for TPUs (./run bench tpu): the training step of a
Llama-style decoder, sharded over a slice as a JAX user would do it, written as StableHLO for
troupe-bench-tpu to compile.

The layout is a mesh of three axes, as MaxText has them: "data" and "fsdp" divide the samples,
"fsdp" also divides every parameter, "tensor" divides heads, the hidden units of the MLP and the
vocabulary.

The gradient of a weight that is cast to bfloat16 is bfloat16 in JAX. With --float32-gradients, each
is accumulated, summed over ranks and kept in float32, as Troupe and Megatron do it.
"""

import argparse
import os
import pathlib

from jax_llama import apply_adamw


def parameters(s, spec):
    """Returns, for each parameter, its shape and how it is divided."""
    head = s["hidden"] // s["heads"]
    all_of = {"embed": ((s["vocab"], s["hidden"]), spec("tensor", "fsdp")),
              "norm": ((s["hidden"],), spec())}
    for layer in range(s["layers"]):
        all_of |= {f"{layer}.norm1": ((s["hidden"],), spec()),
                   f"{layer}.norm2": ((s["hidden"],), spec()),
                   f"{layer}.qkv": ((s["hidden"], 3, s["heads"], head),
                                    spec("fsdp", None, "tensor", None)),
                   f"{layer}.out": ((s["heads"], head, s["hidden"]),
                                    spec("tensor", None, "fsdp")),
                   f"{layer}.gate_up": ((s["hidden"], 2, s["ffn"]), spec("fsdp", None, "tensor")),
                   f"{layer}.down": ((s["ffn"], s["hidden"]), spec("tensor", "fsdp"))}
    return all_of


def make_product(jax, dtype, float32_gradients):
    """Returns einsum of an activation and a float32 parameter, computed in `dtype`."""
    jnp = jax.numpy

    def product(formula, x, weight):
        return jnp.einsum(formula, x, weight.astype(dtype))

    def forward(formula, x, weight):
        return product(formula, x, weight), (x, weight)

    def backward(formula, saved, gradient):
        x, weight = saved
        first, second, result = formula.replace("->", ",").split(",")
        return (jnp.einsum(f"{result},{second}->{first}", gradient, weight.astype(dtype)),
                jnp.einsum(f"{first},{result}->{second}", x, gradient,
                           preferred_element_type=jnp.float32))

    if not float32_gradients:
        return product
    product = jax.custom_vjp(product, nondiff_argnums=(0,))
    product.defvjp(forward, backward)
    return product


def make_step(jax, s, dtype, constrain, float32_gradients):
    jnp = jax.numpy
    rows = ("data", "fsdp")
    product = make_product(jax, dtype, float32_gradients)

    def rms_norm(x, w):
        wide = x.astype(jnp.float32)
        scale = jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-5)
        return (wide * scale * w).astype(x.dtype)

    def rotate(x, cos, sin):
        a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
        turned = jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
        return turned.astype(x.dtype)

    def block(params, layer, x, cos, sin):
        def weight(name):
            return params[f"{layer}.{name}"]
        qkv = product("bth,hpnd->bptnd", rms_norm(x, params[f"{layer}.norm1"]), weight("qkv"))
        qkv = constrain(qkv, rows, None, None, "tensor", None)
        q, k, v = qkv[:, 0], qkv[:, 1], qkv[:, 2]
        mixed = jax.nn.dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v,
                                             is_causal=True)
        x = x + constrain(product("btnd,ndh->bth", mixed, weight("out")), rows, None, None)
        both = product("bth,hpf->bptf", rms_norm(x, params[f"{layer}.norm2"]), weight("gate_up"))
        both = constrain(both, rows, None, None, "tensor")
        hidden = jax.nn.silu(both[:, 0]) * both[:, 1]
        return x + constrain(product("btf,fh->bth", hidden, weight("down")), rows, None, None)

    def loss_of(params, tokens, targets):
        length, head = tokens.shape[1], s["hidden"] // s["heads"]
        inverse = 10000.0 ** (-jnp.arange(0, head, 2, dtype=jnp.float32) / head)
        angles = jnp.outer(jnp.arange(length, dtype=jnp.float32), inverse)[None, :, None, :]
        cos, sin = jnp.cos(angles), jnp.sin(angles)
        table = params["embed"] if float32_gradients else params["embed"].astype(dtype)
        x = constrain(table[tokens].astype(dtype), rows, None, None)
        for layer in range(s["layers"]):
            x = block(params, layer, x, cos, sin)
        normed = rms_norm(x, params["norm"])
        if float32_gradients:
            logits = product("bth,vh->btv", normed, table).astype(jnp.float32)
        else:
            logits = (normed @ table.T).astype(jnp.float32)
        logits = constrain(logits, rows, None, "tensor")
        # A sum over a one-hot tensor divides over the vocabulary, a gather does not.
        chosen = jnp.sum(jax.nn.one_hot(targets, s["vocab"], dtype=jnp.float32) * logits, axis=-1)
        return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - chosen)

    def step(params, first, second, count, tokens, targets):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens, targets)
        params, first, second, count = apply_adamw(jax, params, first, second, count, grads)
        return params, first, second, count, loss

    return step


def main():
    parser = argparse.ArgumentParser()
    for axis in ("data", "fsdp", "tensor"):
        parser.add_argument(f"--{axis}", type=int, default=1)
    for size in ("hidden", "layers", "heads", "ffn", "vocab", "batch", "sequence"):
        parser.add_argument(f"--{size}", type=int, required=True)
    parser.add_argument("--float32-gradients", action="store_true")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    a = parser.parse_args()

    # The devices that the module is written for are imagined.
    ranks = a.data * a.fsdp * a.tensor
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={ranks}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import numpy
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    devices = numpy.array(jax.devices()).reshape(a.data, a.fsdp, a.tensor)
    mesh = Mesh(devices, ("data", "fsdp", "tensor"))

    def sharding(*axes):
        return NamedSharding(mesh, PartitionSpec(*axes))

    s = {name: getattr(a, name) for name in ("hidden", "layers", "heads", "ffn", "vocab")}
    state = {name: jax.ShapeDtypeStruct(shape, numpy.float32, sharding=NamedSharding(mesh, divided))
             for name, (shape, divided) in parameters(s, PartitionSpec).items()}
    count = jax.ShapeDtypeStruct((), numpy.int32, sharding=sharding())
    rows = jax.ShapeDtypeStruct((a.batch, a.sequence), numpy.int32,
                                sharding=sharding(("data", "fsdp"), None))

    def constrain(x, *axes):
        return jax.lax.with_sharding_constraint(x, sharding(*axes))

    shardings = {name: of.sharding for name, of in state.items()}
    step = jax.jit(make_step(jax, s, jax.numpy.bfloat16, constrain, a.float32_gradients),
                   donate_argnums=(0, 1, 2, 3),
                   out_shardings=(shardings, shardings, shardings, sharding(), sharding()))
    traced = step.trace(state, state, state, count, rows, rows)
    a.output.write_text(traced.lower(lowering_platforms=("tpu",)).as_text())


if __name__ == "__main__":
    main()

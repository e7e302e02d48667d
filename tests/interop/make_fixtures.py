#!/usr/bin/env python3
"""Makes the model directories of tests/interop/fixtures, and their expected results, with PyTorch
and transformers.

    python3 tests/interop/make_fixtures.py --troupe build/release/bin/troupe [--output DIR]

Each directory VARIANT contains what transformers' save_pretrained wrote (config.json,
model*.safetensors), the job.yaml of the variant, and expected.json: logits of given tokens, loss
and gradient norm of the first batch, and the losses of 20 AdamW steps of a plain PyTorch loop on
the batches that `troupe data show` prints for job.yaml. The data are data.bin and data.idx of the
folder, which `troupe data prepare` made from a text that this script writes.

The versions in requirements.txt made the committed files; another machine's rounding may differ in
the last digits.
"""

import argparse
import fnmatch
import json
import pathlib
import shutil
import subprocess
import tempfile

import torch
import transformers

STEPS = 20
LOGIT_TOKENS = 40
LR, BETAS, EPS, WEIGHT_DECAY, MAX_NORM = 1.0e-3, (0.9, 0.95), 1.0e-8, 0.1, 1.0

SIZES = dict(vocab_size=259, hidden_size=48, intermediate_size=112, num_hidden_layers=2,
             num_attention_heads=4,
             max_position_embeddings=256, attention_dropout=0.0)
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0,
              high_freq_factor=4.0,
              original_max_position_embeddings=32)

# Config arguments, dtype of the files, bytes per file, whether config.json is rewritten with the
# older keys.
VARIANTS = {
    # Grouped heads wider than hidden / heads, tied, llama3 scaling that affects positions of the
    # sequence, the newer keys.
    "tied-grouped-llama3": (dict(num_key_value_heads=2, head_dim=16, tie_word_embeddings=True,
                                 rms_norm_eps=1e-5, rope_parameters=LLAMA3), torch.float32, None,
                            False),
    # As many key-value heads as heads, an untied head, plain rotary embeddings, the older keys.
    "untied-older-keys": (dict(num_key_value_heads=4, tie_word_embeddings=False, rms_norm_eps=1e-6,
                               rope_parameters=dict(rope_type="default", rope_theta=10000.0)),
                          torch.float32, None, True),
    # bfloat16 in several files with an index, llama3 scaling in the older keys.
    "bfloat16-sharded": (dict(num_key_value_heads=1, tie_word_embeddings=False, rms_norm_eps=1e-5,
                              rope_parameters=LLAMA3), torch.bfloat16, 60_000, True),
}

JOB = """name: {name}
model: {{from: .}}
data: {{train: ../data}}
training: {{steps: {steps}, seed: 5, sequence_length: 48, global_batch_size: 4, \
micro_batch_size: 1, max_norm: {norm}}}
optimizer: {{lr: {lr}, beta1: {beta1}, beta2: {beta2}, eps: {eps}, weight_decay: {decay}}}
"""


def troupe(binary, *arguments):
    return subprocess.run([binary, *map(str, arguments)], check=True, capture_output=True,
                          text=True).stdout


def make_data(binary, output):
    """Writes data.bin and data.idx from a text that can be learnt."""
    with tempfile.TemporaryDirectory() as folder:
        state = 1
        for document in range(6):
            lines = []
            for line in range(60):
                state = (state * 1103515245 + 12345) % 2**31
                lines.append(f"int f{line}(int x) {{ return x * {state % 89} + {document}; }}\n")
            pathlib.Path(folder, f"{document}.h").write_text("".join(lines))
        troupe(binary, "data", "prepare", "--output", output / "data", "--tokenizer", "bytes",
               folder)


def rewrite_with_older_keys(path):
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    config["torch_dtype"] = config.pop("dtype")
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def make_model(directory, arguments, dtype, file_bytes, older_keys, seed):
    torch.manual_seed(seed)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, **arguments))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Larger than transformers' own initial values: logits far from 0, norms that are not
            # all 1.
            if parameter.dim() == 1:
                parameter.copy_(1.0 + 0.2 * torch.randn_like(parameter))
            else:
                parameter.copy_(0.1 * torch.randn_like(parameter))
    limit = {} if file_bytes is None else dict(max_shard_size=file_bytes)
    model.to(dtype).save_pretrained(directory, **limit)
    (directory / "generation_config.json").unlink(missing_ok=True)
    if older_keys:
        rewrite_with_older_keys(directory / "config.json")


def load(directory):
    return transformers.LlamaForCausalLM.from_pretrained(directory, dtype=torch.float32,
                                                         attn_implementation="eager")


def logits(model, tokens):
    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0]


def nll(model, batch):
    """Returns the mean over all tokens of the batch: every token of these samples counts."""
    tokens, targets = (torch.tensor([sample[key] for sample in batch])
                       for key in ("tokens", "targets"))
    scores = model(tokens).logits.float()
    return torch.nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())


def make_optimizer(model, sgd):
    """Returns AdamW with the settings above, or SGD with the settings `sgd`, over the parameters
    that have gradients."""
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [dict(params=[p for p in trained if p.dim() >= 2], weight_decay=WEIGHT_DECAY),
              dict(params=[p for p in trained if p.dim() < 2], weight_decay=0.0)]
    if sgd is not None:
        return torch.optim.SGD(groups, **sgd)
    return torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=EPS)


def train(model, batches, sgd=None, trainable=("*",)):
    """Returns the losses and the gradient norms before clipping, one step per batch. `trainable`:
    globs over the names of the parameters that are trained."""
    model.train()
    for name, parameter in model.named_parameters():
        parameter.requires_grad = any(fnmatch.fnmatchcase(name, glob) for glob in trainable)
    optimizer = make_optimizer(model, sgd)
    losses, norms = [], []
    for batch in batches:
        optimizer.zero_grad()
        loss = nll(model, batch)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM).item())
        losses.append(loss.item())
        optimizer.step()
    return losses, norms


def expected(binary, directory):
    job = directory / "job.yaml"
    batches = [json.loads(troupe(binary, "data", "show", job, "--step", step, "-o",
                                 "json"))["samples"]
               for step in range(1, STEPS + 1)]
    tokens = [sample for sample in batches[0][0]["tokens"]][:LOGIT_TOKENS]
    scores = logits(load(directory), tokens)
    losses, norms = train(load(directory), batches)
    return dict(torch=torch.__version__, transformers=transformers.__version__, tokens=tokens,
                logits=[[round(x, 6) for x in row] for row in scores.tolist()], loss=losses[0],
                grad_norm=norms[0],
                losses=losses, grad_norms=norms)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--troupe", default="build/release/bin/troupe")
    parser.add_argument("--output", type=pathlib.Path,
                        default=pathlib.Path(__file__).parent / "fixtures")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.logging.set_verbosity_error()
    shutil.rmtree(options.output, ignore_errors=True)
    options.output.mkdir(parents=True)
    make_data(options.troupe, options.output)
    for seed, (name, (arguments, dtype, file_bytes,
                      older_keys)) in enumerate(VARIANTS.items(), start=1):
        directory = options.output / name
        make_model(directory, arguments, dtype, file_bytes, older_keys, seed)
        (directory / "job.yaml").write_text(JOB.format(
            name=name, steps=STEPS, norm=MAX_NORM, lr=LR, beta1=BETAS[0], beta2=BETAS[1], eps=EPS,
            decay=WEIGHT_DECAY))
        (directory / "expected.json").write_text(
            json.dumps(expected(options.troupe, directory)) + "\n")
        size = sum(path.stat().st_size for path in directory.iterdir())
        print(f"{name}: {size} bytes")
        if size > 1_000_000:
            raise SystemExit(f"{name}: above 1 MB")


if __name__ == "__main__":
    main()

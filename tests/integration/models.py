"""A small Hugging Face directory with a tokenizer, as models of the hub have one, and texts."""

import json
import shutil

from harness import ROOT

FIXTURE = ROOT / "tests/interop/fixtures/bfloat16-sharded"  # a vocabulary of 259 tokens
END, USER, ASSISTANT = "<|endoftext|>", "<|user|>", "<|assistant|>"
TOKENIZER_FILES = ("tokenizer.json", "special_tokens_map.json", "tokenizer_config.json",
                   "chat_template.jinja", "generation_config.json")

# Texts of docs/fine-tune.md with those that fit the small model, its data and a processor.
SMALL_FINE_TUNE = {"devices: cuda": "devices: cpu", "--devices cuda:1": "--devices cpu:1",
                   "sequence_length: 2048": "sequence_length: 32", "steps: 300": "steps: 12",
                   "warmup_steps: 20": "warmup_steps: 2",
                   "validation_interval: 50": "validation_interval: 6",
                   " --profile examples/profiles/nvidia-h100.yaml": " --verbose"}


def byte_characters():
    """Returns the character by which byte-level BPE writes each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def tokenizer_json():
    """Returns a byte-level BPE without merges: the ids of a text are its bytes."""
    special = [{"id": 256 + i, "content": content, "single_word": False, "lstrip": False,
                "rstrip": False, "normalized": False, "special": True}
               for i, content in enumerate((END, USER, ASSISTANT))]
    vocabulary = {character: byte for byte, character in enumerate(byte_characters())}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
            "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                              "use_regex": True},
            "post_processor": None,
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                        "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None,
                      "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": vocabulary | {token["content"]: token["id"] for token in special},
                      "merges": []}}


def write_model(folder):
    """Writes the model of FIXTURE with a tokenizer, a chat template and settings of generation."""
    folder.mkdir(parents=True)
    for path in [FIXTURE / "config.json", *FIXTURE.glob("model*")]:
        shutil.copy(path, folder)
    contents = {
        "tokenizer.json": tokenizer_json(),
        "special_tokens_map.json": {"eos_token": END, "pad_token": END},
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END,
                                  "pad_token": END, "clean_up_tokenization_spaces": False},
        "generation_config.json": {"eos_token_id": 256, "pad_token_id": 256, "do_sample": False,
                                   "max_new_tokens": 8}}
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n",
                                   encoding="utf-8")
    (folder / "chat_template.jinja").write_text(
        "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}")


def write_notes(path, documents=200):
    """Writes JSON lines with a text that can be learnt."""
    with open(path, "w", encoding="utf-8") as file:
        for i in range(documents):
            text = " ".join(f"note {i}: {j} and {j + i % 5}." for j in range(8))
            file.write(json.dumps({"text": text}) + "\n")


if __name__ == "__main__":
    raise SystemExit("a module of the tests, not a test")

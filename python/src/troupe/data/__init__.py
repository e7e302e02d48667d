"""Prepares training data with the tokenizers of PyPI:

    python -m troupe.data prepare --output PREFIX --tokenizer NAME PATH …

It writes the files that `troupe data prepare` writes (docs/data.md).
"""

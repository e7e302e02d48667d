"""Copies the configuration of a Hugging Face directory into a job's model, as `troupe submit` does
(interop/hf_config.h): what would compute something else is refused by name."""

from __future__ import annotations

import contextlib
import json
import math
import os
from typing import Any, Dict, Iterator, List, NoReturn, Optional, Tuple

from google.protobuf.message import Message

from troupe._plain_file import read_plain_file
from troupe.errors import Violation
from troupe.v1 import job_pb2

_MOST_CONFIG_BYTES = 1 << 20
_MOST_INDEX_BYTES = 256 << 20
_MOST_HEADER_BYTES = 100 << 20
_MOST_LAYERS = 2048
_MOST_SIZE = 1 << 40
_KEPT = ("bos_token_id", "eos_token_id", "pad_token_id")  # for an export
_SCALED_ROPE = "llama3"
_GIT_LFS = b"version https://git-lfs.github.com/spec/"
_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_ANY_TENSOR = "model.norm.weight"  # all have one format
_FORMATS = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}


class _Refused(Exception):
    """The directory has no model that Troupe trains."""


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Adds the path to what is refused."""
    try:
        yield
    except _Refused as refused:
        raise _Refused(f"{path}: {refused}") from None


def _shown(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))[:80]


def _object(text: bytes) -> Dict[str, Any]:
    """Parses a JSON object, in which NaN and infinities are no numbers."""

    def no_json(word: str) -> NoReturn:
        raise ValueError(word)

    try:
        parsed = json.loads(text, parse_constant=no_json)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise _Refused("it is not a JSON object")
    return parsed


class _Keys:
    """Keys of a JSON object, which errors name behind `prefix`. A null counts as absent."""

    def __init__(self, keys: Dict[str, Any], prefix: str = "") -> None:
        self._keys = keys
        self._prefix = prefix

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def find(self, key: str) -> Any:
        return self._keys.get(key)

    def _value(self, key: str, otherwise: Any) -> Any:
        value = self._keys.get(key)
        if value is not None:
            return value
        if otherwise is None:
            raise _Refused(f"{self._prefix}{key} is absent")
        return otherwise

    def _refuse(self, key: str, value: Any, wanted: str) -> NoReturn:
        raise _Refused(f"{self._prefix}{key} is {_shown(value)}, not {wanted}")

    def integer(self, key: str, otherwise: Optional[int] = None) -> int:
        value = self._value(key, otherwise)
        if type(value) is not int or not 1 <= value <= _MOST_SIZE:
            self._refuse(key, value, f"a whole number from 1 to {_MOST_SIZE}")
        return int(value)

    def number(self, key: str, otherwise: Optional[float] = None) -> float:
        value = self._value(key, otherwise)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self._refuse(key, value, "a finite number")
        number = float(value) if abs(value) < 1 << 1023 else math.inf
        if math.isinf(number):
            self._refuse(key, value, "a finite number")
        return number

    def boolean(self, key: str) -> bool:
        value = self._value(key, False)
        if not isinstance(value, bool):
            self._refuse(key, value, "true or false")
        return value

    def text(self, key: str, otherwise: str) -> str:
        value = self._value(key, otherwise)
        if not isinstance(value, str):
            self._refuse(key, value, "text")
        return value


def _check_arithmetic(config: _Keys) -> None:
    """Refuses settings that other members of the family may enable."""
    kind = config.text("model_type", "")
    if kind not in ("llama", "mistral"):
        raise _Refused(f"model_type is {_shown(kind)}, not llama or mistral")
    activation = config.text("hidden_act", "silu")
    if activation != "silu":
        raise _Refused(f"hidden_act is {_shown(activation)}, must be silu")
    for key in ("attention_bias", "mlp_bias"):
        if config.boolean(key):
            raise _Refused(f"{key} is true, but biases of projections are not supported")
    dropout = config.number("attention_dropout", 0.0)
    if dropout != 0:
        raise _Refused(f"attention_dropout is {dropout:g}, but dropout of attention weights is not "
                       "supported")
    if config.find("quantization_config") is not None:
        raise _Refused(f"quantization_config is {_shown(config.find('quantization_config'))}, but "
                       "quantized weights are not supported")
    # This is Mistral's one difference; if the key is absent, the window is 4096.
    is_absent = "sliding_window" not in config
    if kind == "mistral" if is_absent else config.find("sliding_window") is not None:
        window = ("absent, which means 4096" if is_absent
                  else _shown(config.find("sliding_window")))
        raise _Refused(f"sliding_window is {window}, but attention over a window is not supported")


def _check_whole_heads(keys: _Keys, name: str) -> None:
    partial = keys.number("partial_rotary_factor", 1.0)
    if partial != 1:
        raise _Refused(f"{name}partial_rotary_factor is {partial:g}, but RoPE on a part of a head "
                       "is not supported")


_Rope = Tuple[float, Optional[job_pb2.RopeScaling]]


def _parse_rope(stated: Any, name: str, theta: float, config: _Keys) -> _Rope:
    """Parses `rope_scaling` or `rope_parameters`, which may contain rope_theta too."""
    if not isinstance(stated, dict):
        raise _Refused(f"{name} is {_shown(stated)}, not an object")
    keys = _Keys(stated, f"{name}.")
    theta = keys.number("rope_theta", theta)
    kind = keys.text("rope_type", keys.text("type", "default"))
    _check_whole_heads(keys, f"{name}.")
    if kind == "default":
        return theta, None
    if kind != _SCALED_ROPE:
        raise _Refused(f"{name}.rope_type is {_shown(kind)}, must be default or {_SCALED_ROPE}")
    factor, low, high = (keys.number(key)
                         for key in ("factor", "low_freq_factor", "high_freq_factor"))
    if not (factor > 0 and low > 0 and high > low):
        raise _Refused(f"{name} has factor {factor:g}, low_freq_factor {low:g}, high_freq_factor "
                       f"{high:g}; all must be above 0, and high_freq_factor above "
                       "low_freq_factor")
    # As in transformers, the value next to the object replaces the one in it.
    original = "original_max_position_embeddings"
    context = (keys if config.find(original) is None else config).integer(original)
    return theta, job_pb2.RopeScaling(
        rope_type=_SCALED_ROPE, factor=factor, low_freq_factor=low, high_freq_factor=high,
        original_max_position_embeddings=context)


def _read_rope(config: _Keys) -> _Rope:
    theta = config.number("rope_theta", 10000.0)
    rope: _Rope = (theta, None)
    older, newer = config.find("rope_scaling"), config.find("rope_parameters")
    if older is not None:
        rope = _parse_rope(older, "rope_scaling", theta, config)
    if newer is not None:
        stated = _parse_rope(newer, "rope_parameters", theta, config)
        if older is not None and stated[1] != rope[1]:
            raise _Refused("rope_parameters and rope_scaling differ")
        if config.find("rope_theta") is not None and stated[0] != theta:
            raise _Refused(f"rope_parameters.rope_theta is {stated[0]:g} but rope_theta is "
                           f"{theta:g}")
        rope = stated
    if not rope[0] > 0:
        raise _Refused(f"rope_theta is {rope[0]:g}, not above 0")
    _check_whole_heads(config, "")
    return rope


def _parse_config(text: bytes) -> job_pb2.ModelSpec:
    """Returns the model that a config.json states, with every key of its shape set; absent keys
    have the defaults of transformers."""
    config = _Keys(_object(text))
    _check_arithmetic(config)
    vocabulary, hidden, inner, layers, heads = (
        config.integer(key) for key in ("vocab_size", "hidden_size", "intermediate_size",
                                        "num_hidden_layers", "num_attention_heads"))
    if layers > _MOST_LAYERS:
        raise _Refused(f"num_hidden_layers is {layers}, above {_MOST_LAYERS}")
    if config.find("head_dim") is None and hidden % heads != 0:
        raise _Refused(f"num_attention_heads is {heads}, which does not divide hidden_size = "
                       f"{hidden}, and head_dim is absent")
    eps = config.number("rms_norm_eps", 1e-6)
    if not eps > 0:
        raise _Refused(f"rms_norm_eps is {eps:g}, not above 0")
    theta, scaling = _read_rope(config)
    kept = {key: config.find(key) for key in _KEPT if config.find(key) is not None}
    return job_pb2.ModelSpec(
        pattern=f"(AD)x{layers}", hidden_size=hidden, num_attention_heads=heads,
        num_key_value_heads=config.integer("num_key_value_heads", heads),
        head_dim=config.integer("head_dim", max(hidden // heads, 1)), intermediate_size=inner,
        vocab_size=vocabulary, tie_word_embeddings=config.boolean("tie_word_embeddings"),
        norm_eps=eps, max_position_embeddings=config.integer("max_position_embeddings", 2048),
        rope_theta=theta, rope_scaling=scaling,
        export_config=json.dumps(kept, separators=(",", ":")) if kept else None)


def _read(path: str, most_bytes: int) -> bytes:
    content = read_plain_file(path, most_bytes)[0]
    if content.startswith(_GIT_LFS):
        raise _Refused("is a Git LFS pointer and not the file that it stands for, which git lfs "
                       "pull fetches")
    return content


def _weights_file(folder: str) -> str:
    """Returns the path of a file with weights."""
    single = os.path.join(folder, _WEIGHTS)
    if os.path.exists(single):
        return single
    index = os.path.join(folder, _INDEX)
    if not os.path.exists(index):
        raise _Refused(f"{folder}: has neither {_WEIGHTS} nor {_INDEX}")
    with _naming(index):
        files = _object(_read(index, _MOST_INDEX_BYTES)).get("weight_map")
        name = files.get(_ANY_TENSOR) if isinstance(files, dict) else None
        if not isinstance(name, str) or name.startswith(".") or os.path.basename(name) != name:
            raise _Refused(f"weight_map names no plain file name for {_ANY_TENSOR}")
    return os.path.join(folder, name)


def _read_header(path: str) -> bytes:
    """Returns the header of a file of safetensors, a JSON object."""
    # A FIFO in the place of the file must not be waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = file.read(size) if size <= _MOST_HEADER_BYTES else b""
    if not header or len(header) < size:
        raise _Refused("is no file of safetensors")
    return header


def _export_dtype(folder: str) -> str:
    """Returns the format of the weights, in which an export is written by default. The ranks check
    all tensors before they train."""
    path = _weights_file(folder)
    with _naming(path):
        tensor = _object(_read_header(path)).get(_ANY_TENSOR)
        dtype = tensor.get("dtype") if isinstance(tensor, dict) else None
        if dtype is None:
            raise _Refused(f"has no tensor {_ANY_TENSOR}")
        if not isinstance(dtype, str) or dtype not in _FORMATS:
            raise _Refused(f"tensor {_ANY_TENSOR} has the dtype {_shown(dtype)}, not one of "
                           f"{', '.join(_FORMATS)}")
    return _FORMATS[dtype]


def _read_model(folder: str) -> job_pb2.ModelSpec:
    path = os.path.join(folder, "config.json")
    with _naming(path):
        model = _parse_config(_read(path, _MOST_CONFIG_BYTES))
    model.export_dtype = _export_dtype(folder)
    return model


def _field_text(model: Message, name: str) -> str:
    if not model.HasField(name):
        return "none"
    value = getattr(model, name)
    return " ".join(str(value).split()) if isinstance(value, Message) else _shown(value)


def inline_model(model: job_pb2.ModelSpec) -> List[Violation]:
    """Copies the configuration of model.from, an absolute path, into the other keys. Returns the
    violations: what the directory has that Troupe does not train, and keys of the job that are set
    to other values. REQUIRES: model.from is set."""
    folder = str(getattr(model, "from"))
    if not os.path.isdir(folder):
        return [Violation("model.from", f"is {folder}: there is no such directory; a model of the "
                          "Hugging Face hub is downloaded first: `hf download NAME --local-dir DIR`"
                          )]
    try:
        stated = _read_model(folder)
    except OSError as error:
        return [Violation("model.from", f"is {folder}: {error.filename}: {error.strerror}")]
    except (_Refused, ValueError) as refused:
        return [Violation("model.from", f"is {folder}: {refused}")]
    violations = []
    read: Message = stated
    for field, value in model.ListFields():
        # The others affect only the form of an export.
        if field.name in ("from", "max_position_embeddings") or field.name.startswith("export_"):
            continue
        is_equal = not field.is_repeated and read.HasField(field.name) and (
            getattr(read, field.name) == value)
        if not is_equal:
            violations.append(Violation(
                f"model.{field.name}", f"is {_field_text(model, field.name)} in addition to "
                f"model.from, but {folder} has {_field_text(read, field.name)}"))
    stated.MergeFrom(model)
    model.CopyFrom(stated)
    return violations

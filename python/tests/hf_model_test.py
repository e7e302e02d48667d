"""The configuration of a Hugging Face directory is copied into a job as `troupe submit` copies it.
cluster_test.py compares the two."""

import json
import pathlib
import tempfile
import unittest

from troupe._hf_model import inline_model
from troupe.v1 import job_pb2

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "tests/interop/fixtures"
SMALL = {"model_type": "llama", "vocab_size": 259, "hidden_size": 64, "intermediate_size": 96,
         "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "rms_norm_eps": 1e-6, "max_position_embeddings": 128, "tie_word_embeddings": True}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}


def safetensors(**dtypes):
    header = json.dumps({name: {"dtype": dtype, "shape": [0], "data_offsets": [0, 0]}
                         for name, dtype in dtypes.items()}).encode()
    return len(header).to_bytes(8, "little") + header


class HfModelTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.weights = safetensors(**{"model.norm.weight": "BF16"})

    def inline(self, config, **stated):
        (self.folder / "config.json").write_text(
            config if isinstance(config, str) else json.dumps(config))
        if self.weights is not None:
            (self.folder / "model.safetensors").write_bytes(self.weights)
        model = job_pb2.ModelSpec(**{"from": str(self.folder)}, **stated)
        return model, inline_model(model)

    def model(self, config, **stated):
        model, violations = self.inline(config, **stated)
        self.assertEqual(violations, [])
        return model

    def refusal(self, config, **stated):
        _, violations = self.inline(config, **stated)
        self.assertEqual(len(violations), 1, violations)
        return f"{violations[0].field}: {violations[0].description}"

    def test_every_key_of_the_shape_is_set(self):
        model = self.model({**SMALL, "eos_token_id": [7, 9], "pad_token_id": None})
        self.assertEqual(
            (model.pattern, model.hidden_size, model.num_attention_heads, model.num_key_value_heads,
             model.head_dim, model.intermediate_size, model.vocab_size, model.tie_word_embeddings,
             model.rope_theta, model.norm_eps, model.max_position_embeddings, model.export_dtype,
             model.export_config),
            ("(AD)x2", 64, 4, 2, 16, 96, 259, True, 10000.0, 1e-6, 128, "bfloat16",
             '{"eos_token_id":[7,9]}'))
        self.assertFalse(model.HasField("rope_scaling"))

    def test_keys_that_are_left_out_are_those_of_transformers(self):
        config = {key: value for key, value in SMALL.items()
                  if key not in ("num_key_value_heads", "rms_norm_eps", "max_position_embeddings",
                                 "tie_word_embeddings")}
        model = self.model({**config, "head_dim": None})
        self.assertEqual((model.num_key_value_heads, model.head_dim, model.norm_eps,
                          model.max_position_embeddings, model.tie_word_embeddings),
                         (4, 16, 1e-6, 2048, False))
        self.assertFalse(model.HasField("export_config"))

    def test_both_spellings_of_rope_mean_the_same(self):
        older = {**SMALL, "rope_theta": 500000.0, "rope_scaling": LLAMA3}
        newer = {**SMALL, "rope_parameters": {**LLAMA3, "rope_theta": 500000}}
        old_type = {**older, "rope_scaling": {**LLAMA3, "type": "llama3"}}
        del old_type["rope_scaling"]["rope_type"]
        outside = {**older, "original_max_position_embeddings": 32,
                   "rope_scaling": {**LLAMA3, "original_max_position_embeddings": 64}}
        for config in (older, newer, old_type, outside):
            model = self.model(config)
            self.assertEqual(model.rope_theta, 500000.0)
            self.assertEqual(model.rope_scaling, job_pb2.RopeScaling(**LLAMA3))

    def test_what_troupe_does_not_train_is_refused_by_name(self):
        for key, value, words in (
                ("model_type", "qwen2", '"qwen2"'),
                ("model_type", "mistral", "sliding_window is absent"),
                ("hidden_act", "gelu", '"gelu"'),
                ("attention_bias", True, "attention_bias is true"),
                ("mlp_bias", 1, "mlp_bias is 1"),
                ("attention_dropout", 0.1, "attention_dropout is 0.1"),
                ("quantization_config", {"bits": 4}, "quantization_config"),
                ("sliding_window", 4096, "sliding_window is 4096"),
                ("partial_rotary_factor", 0.5, "partial_rotary_factor is 0.5"),
                ("rope_scaling", {"rope_type": "yarn"}, '"yarn"'),
                ("rope_scaling", {**LLAMA3, "high_freq_factor": 0.5}, "high_freq_factor 0.5"),
                ("rope_scaling", {**LLAMA3, "factor": None}, "rope_scaling.factor is absent"),
                ("rope_scaling", "llama3", "not an object"),
                ("rope_theta", 0, "rope_theta is 0"),
                ("rope_theta", 10**400, "not a finite number"),
                ("rms_norm_eps", 0, "rms_norm_eps is 0"),
                ("hidden_size", 64.0, "hidden_size is 64.0"),
                ("hidden_size", True, "hidden_size is true"),
                ("hidden_size", 1 << 64, "not a whole number"),
                ("hidden_size", None, "hidden_size is absent"),
                ("hidden_size", 65, "does not divide hidden_size = 65"),
                ("num_hidden_layers", 10**6, "num_hidden_layers is 1000000"),
                ("tie_word_embeddings", 1, "tie_word_embeddings is 1")):
            with self.subTest(key, value=value):
                refusal = self.refusal({**SMALL, key: value})
                self.assertIn(words, refusal)
                self.assertIn(f"{self.folder}/config.json", refusal)
        self.assertIn("rope_theta is 1", self.refusal(
            {**SMALL, "rope_theta": 1.0, "rope_parameters": {"rope_theta": 2.0}}))
        self.assertIn("differ", self.refusal(
            {**SMALL, "rope_scaling": LLAMA3, "rope_parameters": {"rope_type": "default"}}))
        for text in ("", "[]", "{", '{"model_type": Infinity}'):
            self.assertIn("not a JSON object", self.refusal(text))
        self.assertIn("Git LFS", self.refusal("version https://git-lfs.github.com/spec/v1\n"))

    def test_keys_of_the_job_must_agree(self):
        model = self.model(SMALL, hidden_size=64, max_position_embeddings=7,
                           export_dtype="float16")
        self.assertEqual((model.max_position_embeddings, model.export_dtype), (7, "float16"))
        _, violations = self.inline(SMALL, hidden_size=32, num_experts=2)
        self.assertEqual([each.field for each in violations],
                         ["model.hidden_size", "model.num_experts"])
        self.assertIn("is 32 in addition to model.from", violations[0].description)
        self.assertIn("has 64", violations[0].description)
        self.assertIn("has none", violations[1].description)

    def test_the_format_is_that_of_the_weights(self):
        self.weights = safetensors(**{"model.norm.weight": "F16"})
        self.assertEqual(self.model(SMALL).export_dtype, "float16")
        for weights, words in ((safetensors(**{"model.norm.weight": "I8"}), '"I8"'),
                               (safetensors(other="F32"), "no tensor"),
                               (b"", "no file of safetensors"),
                               (b"\xff" * 9, "no file of safetensors")):
            self.weights = weights
            self.assertIn(words, self.refusal(SMALL))
        self.weights = None
        (self.folder / "model.safetensors").unlink()
        self.assertIn("has neither", self.refusal(SMALL))
        (self.folder / "part").write_bytes(safetensors(**{"model.norm.weight": "F32"}))
        for name, words in (("../part", "no plain file name"), (3, "no plain file name")):
            (self.folder / "model.safetensors.index.json").write_text(
                json.dumps({"weight_map": {"model.norm.weight": name}}))
            self.assertIn(words, self.refusal(SMALL))
        (self.folder / "model.safetensors.index.json").write_text(
            json.dumps({"weight_map": {"model.norm.weight": "part"}}))
        self.assertEqual(self.model(SMALL).export_dtype, "float32")

    def test_models_that_transformers_wrote_are_read(self):
        for folder in sorted(FIXTURES.glob("*/config.json")):
            config = json.loads(folder.read_text())
            model = job_pb2.ModelSpec(**{"from": str(folder.parent)})
            self.assertEqual(inline_model(model), [])
            self.assertEqual(model.pattern, f"(AD)x{config['num_hidden_layers']}")
            self.assertEqual(model.export_dtype, config.get("dtype") or config["torch_dtype"])


if __name__ == "__main__":
    unittest.main()

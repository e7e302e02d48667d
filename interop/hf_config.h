// config.json of Hugging Face's Llama family, to and from the model keys of a job.
//
// Both of its spellings of rotary embeddings are read: `rope_theta` beside `rope_scaling`, and the
// newer `rope_parameters`. What would change the arithmetic and is not built (biases, dropout,
// other activations, other rope types, sliding windows, quantized weights) is refused by name.
#ifndef TROUPE_INTEROP_HF_CONFIG_H_
#define TROUPE_INTEROP_HF_CONFIG_H_

#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"
#include "interop/number_format.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

inline constexpr char kHfConfigFileName[] = "config.json";

// The model that the text of a config.json states, every key of its shape set; keys that it leaves
// out have the values that transformers gives them. Token ids go to export_config; export_dtype is
// left to whoever reads the weights. INVALID_ARGUMENT naming key, value and reason. Pure.
StatusOr<v1::ModelSpec> ParseHfConfig(std::string_view json);

// The same of DIR/config.json, the file named in errors.
StatusOr<v1::ModelSpec> ReadHfConfig(FileSystem& files, const std::string& directory);

// The text of a config.json that transformers 4 and 5 load as LlamaForCausalLM: rotary embeddings
// are in both spellings, and those keys of export_config are added that are not among these.
// INVALID_ARGUMENT for a pattern that Llama has not. REQUIRES: every key of the shape and
// max_position_embeddings set. Pure.
StatusOr<std::string> HfConfigText(const v1::ModelSpec& model, NumberFormat format);

}  // namespace troupe

#endif  // TROUPE_INTEROP_HF_CONFIG_H_

// Converts config.json of Hugging Face's Llama family to and from the model keys of a job.
//
// Both spellings of rotary embeddings are read: `rope_theta` with `rope_scaling`, and the newer
// `rope_parameters`. Settings that would change the arithmetic and are not implemented (biases,
// dropout, other activations, other rope types, sliding windows, quantized weights) are refused by
// name.
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

// Returns the model that the text of a config.json states, with every key of its shape set; absent
// keys have the defaults of transformers. Token ids go to export_config; export_dtype is left for
// the reader of the weights. INVALID_ARGUMENT names key, value and reason. Pure.
StatusOr<v1::ModelSpec> ParseHfConfig(std::string_view json);

// The same for DIR/config.json; errors name the file.
StatusOr<v1::ModelSpec> ReadHfConfig(FileSystem& files, const std::string& directory);

// Returns the text of a config.json that transformers 4 and 5 load as LlamaForCausalLM. Rotary
// embeddings are in both spellings, and keys of export_config that the text does not have yet are
// added. INVALID_ARGUMENT for a pattern that Llama does not have. REQUIRES: every key of the shape
// and max_position_embeddings set. Pure.
StatusOr<std::string> HfConfigText(const v1::ModelSpec& model, NumberFormat format);

}  // namespace troupe

#endif  // TROUPE_INTEROP_HF_CONFIG_H_

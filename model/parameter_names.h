// The Hugging Face names of a model's trained tensors.
#ifndef TROUPE_MODEL_PARAMETER_NAMES_H_
#define TROUPE_MODEL_PARAMETER_NAMES_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "model/blocks/config.h"

namespace troupe::model {

// The names in the order of the model's blocks, without duplicates. Returns the errors of
// BuildProgram for the model on one rank.
StatusOr<std::vector<std::string>> ParameterNames(const ModelConfig& model);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PARAMETER_NAMES_H_

// The Hugging Face names of a model's trained tensors.
#ifndef TROUPE_MODEL_PARAMETER_NAMES_H_
#define TROUPE_MODEL_PARAMETER_NAMES_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "model/config.h"

namespace troupe::model {

// In the order of the model's blocks, each once. Errors of BuildProgram, of the model as one rank
// has it.
StatusOr<std::vector<std::string>> ParameterNames(const ModelConfig& model);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PARAMETER_NAMES_H_

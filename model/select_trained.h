// Decides which parameters of a model a job trains.
#ifndef TROUPE_MODEL_SELECT_TRAINED_H_
#define TROUPE_MODEL_SELECT_TRAINED_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "model/blocks/config.h"
#include "model/program/trained_parameters.h"

namespace troupe::model {

// The parameters of `model` that `globs` train (over Hugging Face names); all without globs.
// INVALID_ARGUMENT: a glob matches no parameter, or the globs match one of several tensors that are
// stored as one matrix, but not all of them. Also returns the errors of BuildProgram for the model
// on one rank. Pure.
StatusOr<TrainedParameters> SelectTrained(const ModelConfig& model, std::vector<std::string> globs);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_SELECT_TRAINED_H_

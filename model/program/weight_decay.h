// Selects the tensors to which the optimizer applies weight decay. Pure.
#ifndef TROUPE_MODEL_PROGRAM_WEIGHT_DECAY_H_
#define TROUPE_MODEL_PROGRAM_WEIGHT_DECAY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::model {

// Whether `glob` (fnmatch without flags: * ? [...], and \ before one of them) matches the whole
// `name`.
bool MatchesGlob(const std::string& glob, const std::string& name);

// Whether weight decay applies to the Hugging Face tensor `name` with global `shape`: if no glob of
// `exempt` matches the name; without globs, if it has two or more dimensions.
bool DecaysWeight(const std::string& name, const std::vector<int64_t>& shape,
                  const std::vector<std::string>& exempt);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_WEIGHT_DECAY_H_

// Which tensors the optimizer decays. Pure.
#ifndef TROUPE_MODEL_PROGRAM_WEIGHT_DECAY_H_
#define TROUPE_MODEL_PROGRAM_WEIGHT_DECAY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::model {

// Whether `glob` (fnmatch without flags: * ? [...], and \ before one of them) is the whole of
// `name`.
bool MatchesGlob(const std::string& glob, const std::string& name);

// Whether the Hugging Face tensor `name` of the whole `shape` decays: where no glob of `exempt`
// matches it, and without globs where it has two or more dimensions.
bool DecaysWeight(const std::string& name, const std::vector<int64_t>& shape,
                  const std::vector<std::string>& exempt);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_WEIGHT_DECAY_H_

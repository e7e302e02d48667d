#include "model/program/trained_parameters.h"

#include <algorithm>

#include "model/program/weight_decay.h"

namespace troupe::model {

TrainedParameters TrainedParameters::None() {
  // Names have no control characters.
  return {.globs = {"\n"}, .blocks = {}};
}

bool TrainedParameters::Includes(const std::string& name) const {
  return globs.empty() || std::ranges::any_of(globs, [&](const std::string& glob) {
           return MatchesGlob(glob, name);
         });
}

}  // namespace troupe::model

#include "plan/validate/validate_weight_decay.h"

#include <algorithm>
#include <string>
#include <vector>

#include "model/parameter_names.h"
#include "model/program/weight_decay.h"
#include "plan/validate/stage_inputs.h"

namespace troupe {
namespace {

constexpr char kField[] = "optimizer.no_weight_decay";

StatusOr<std::vector<std::string>> NamesOf(const v1::ModelSpec& spec) {
  TROUPE_ASSIGN_OR_RETURN(const model::ModelConfig model, MakeModelConfig(spec));
  return model::ParameterNames(model);
}

}  // namespace

void ValidateWeightDecay(const v1::JobSpec& spec, Violations* violations) {
  const auto& globs = spec.optimizer().no_weight_decay();
  // [""]: every tensor decays.
  if (globs.empty() || (globs.size() == 1 && globs[0].empty())) return;
  const StatusOr<std::vector<std::string>> names = NamesOf(spec.model());
  if (!names.ok()) {
    violations->Add("model", "has no tensors to name: {}", Message(names.status()));
    return;
  }
  for (int i = 0; i < globs.size(); ++i) {
    const std::string field = fmt::format("{}[{}]", kField, i);
    if (globs[i].empty()) {
      violations->Add(field,
                      "is \"\", which means that every tensor decays; remove it or the {} other{}",
                      globs.size() - 1, globs.size() == 2 ? "" : "s");
    } else if (std::ranges::none_of(*names, [&](const std::string& name) {
                 return model::MatchesGlob(globs[i], name);
               })) {
      violations->Add(field, "is \"{}\", which matches none of the model's {} tensors, {} to {}",
                      globs[i].substr(0, 200), names->size(), names->front(), names->back());
    }
  }
}

}  // namespace troupe

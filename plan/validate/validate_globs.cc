#include "plan/validate/validate_globs.h"

#include <algorithm>
#include <string>
#include <vector>

#include "model/parameter_names.h"
#include "model/program/weight_decay.h"
#include "model/select_trained.h"
#include "plan/validate/decoded_job.h"

namespace troupe {
namespace {

constexpr char kNoWeightDecay[] = "optimizer.no_weight_decay";
constexpr char kTrainable[] = "model.trainable";

using Globs = google::protobuf::RepeatedPtrField<std::string>;

void RequireMatches(const char* key, const Globs& globs, const std::vector<std::string>& names,
                    Violations* violations) {
  for (int i = 0; i < globs.size(); ++i) {
    const std::string field = fmt::format("{}[{}]", key, i);
    if (globs[i].empty() && key == kNoWeightDecay) {
      violations->Add(field,
                      "is \"\", which means that every tensor decays; remove it or the {} other{}",
                      globs.size() - 1, globs.size() == 2 ? "" : "s");
    } else if (std::ranges::none_of(names, [&](const std::string& name) {
                 return model::MatchesGlob(globs[i], name);
               })) {
      violations->Add(field, "is \"{}\", which matches none of the model's {} tensors, {} to {}",
                      globs[i].substr(0, 200), names.size(), names.front(), names.back());
    }
  }
}

// Frozen parameters keep the values of a model that exists.
void ValidateTrainable(const v1::JobSpec& spec, const model::ModelConfig& model,
                       const std::vector<std::string>& names, Violations* violations) {
  const auto trained = model::SelectTrained(model, GlobsOf(spec.model().trainable()));
  if (!trained.ok()) {
    violations->Add(kTrainable, "{}", Message(trained.status()));
    return;
  }
  const auto frozen = std::ranges::find_if_not(
      names, [&](const std::string& name) { return trained->Includes(name); });
  if (frozen == names.end()) return;
  if (spec.model().has_from() || !spec.checkpoint().initial_load().empty()) return;
  violations->Add(kTrainable,
                  "freezes {}, so model.from or checkpoint.initial_load must state the model that "
                  "gives its numbers",
                  *frozen);
}

}  // namespace

void ValidateGlobs(const v1::JobSpec& spec, Violations* violations) {
  const Globs& exempt = spec.optimizer().no_weight_decay();
  const Globs& trainable = spec.model().trainable();
  // [""]: every tensor decays.
  const bool exempts = !exempt.empty() && !(exempt.size() == 1 && exempt[0].empty());
  if (!exempts && trainable.empty()) return;
  const StatusOr<model::ModelConfig> model = MakeModelConfig(spec.model());
  const StatusOr<std::vector<std::string>> names =
      model.ok() ? model::ParameterNames(*model) : model.status();
  if (!names.ok()) {
    violations->Add("model", "has no tensors to name: {}", Message(names.status()));
    return;
  }
  if (exempts) RequireMatches(kNoWeightDecay, exempt, *names, violations);
  if (trainable.empty()) return;
  RequireMatches(kTrainable, trainable, *names, violations);
  if (!violations->Has(kTrainable)) ValidateTrainable(spec, *model, *names, violations);
}

}  // namespace troupe

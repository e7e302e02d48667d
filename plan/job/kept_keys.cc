#include "plan/job/kept_keys.h"

#include <google/protobuf/util/json_util.h>

#include <string>

#include "plan/job/key_path.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;

// Calls `differ(path, text, old text)` for each key at or below `field` with different values.
template <typename Differ>
void CompareKey(const ProtoMessage& before, const ProtoMessage& after, const FieldDescriptor* field,
                const std::string& path, const Differ& differ) {
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
    const ProtoMessage& old_value = before.GetReflection()->GetMessage(before, field);
    const ProtoMessage& value = after.GetReflection()->GetMessage(after, field);
    for (int i = 0; i < field->message_type()->field_count(); ++i) {
      const FieldDescriptor* const inner = field->message_type()->field(i);
      CompareKey(old_value, value, inner, path + "." + inner->name(), differ);
    }
    return;
  }
  const std::string old_text = KeyText(before, field->name());
  const std::string text = KeyText(after, field->name());
  if (old_text != text) differ(path, text, old_text);
}

template <typename Differ>
void CompareNamed(const ProtoMessage& before, const ProtoMessage& after, const char* name,
                  const std::string& prefix, const Differ& differ) {
  CompareKey(before, after, before.GetDescriptor()->FindFieldByName(name), prefix + name, differ);
}

// Calls `differ` for the keys on which depends what a checkpoint holds of the optimizer.
template <typename Differ>
void CompareOptimizers(const v1::OptimizerSpec& before, const v1::OptimizerSpec& after,
                       const Differ& differ) {
  CompareNamed(before, after, "name", "optimizer.", differ);
  if ((before.momentum() == 0) == (after.momentum() == 0)) return;
  CompareNamed(before, after, "momentum", "optimizer.", differ);
}

}  // namespace

Status CheckKeptKeys(const v1::JobSpec& before, const v1::JobSpec& after) {
  Violations violations;
  const auto differ = [&](const std::string& path, const std::string& text,
                          const std::string& old_text) {
    violations.Add(path, "is {}, but a resumed job keeps its value {}", text, old_text);
  };
  CompareNamed(before, after, "model", "", differ);
  CompareNamed(before, after, "data", "", differ);
  for (const char* key : {"seed", "sequence_length", "global_batch_size"}) {
    CompareNamed(before.training(), after.training(), key, "training.", differ);
  }
  CompareOptimizers(before.optimizer(), after.optimizer(), differ);
  return violations.ToStatus();
}

Status CheckContinues(const v1::CheckpointManifest& manifest, const v1::JobSpec& spec) {
  const v1::TrainingState& state = manifest.state();
  Violations violations;
  const v1::TrainingSpec& training = spec.training();
  const bool trained = state.step() > 0;
  if (trained && training.steps() <= state.step()) {
    violations.AddNotAbove(
        "training.steps", training.steps(),
        fmt::format("the {} steps that the checkpoint has completed", state.step()));
  }
  if (trained && training.seed() != state.seed()) {
    violations.Add("training.seed",
                   "is {}, but the checkpoint drew its samples with {}: some samples would be "
                   "repeated and others never used",
                   training.seed(), state.seed());
  }
  // In 128 bits, because both numbers may have any value.
  const __int128 samples = static_cast<__int128>(state.step()) * training.global_batch_size();
  if (trained && samples != state.consumed_samples()) {
    violations.Add("training.global_batch_size",
                   "is {}, but the {} steps of the checkpoint have consumed {} samples: some "
                   "samples would be repeated or never used",
                   training.global_batch_size(), state.step(), state.consumed_samples());
  }
  if (!manifest.job_spec_json().empty()) {
    v1::JobSpec made_with;
    google::protobuf::util::JsonParseOptions options;
    options.ignore_unknown_fields = true;
    const auto parsed =
        google::protobuf::util::JsonStringToMessage(manifest.job_spec_json(), &made_with, options);
    if (!parsed.ok()) {
      return InvalidArgument("job_spec_json of its manifest is not a job: {}",
                             std::string(parsed.message()));
    }
    const auto differ = [&](const std::string& path, const std::string& text,
                            const std::string& old_text) {
      // A checkpoint with the whole model serves a job that freezes a part of it.
      if (path == "model.trainable" && !manifest.has_base()) return;
      // These keys state where the model's numbers came from and what exports contain; they are not
      // numbers of the model.
      if (path == "model.preset" || path == "model.from" || path == "model.export_dtype" ||
          path == "model.export_config" || path == "model.max_position_embeddings" ||
          path == "model.initializer_range") {
        return;
      }
      violations.Add(path, "is {}, but the checkpoint was made with {}", text, old_text);
    };
    CompareNamed(made_with, spec, "model", "", differ);
    if (trained) {
      CompareNamed(made_with.training(), training, "sequence_length", "training.", differ);
      if (made_with.optimizer().has_name())
        CompareOptimizers(made_with.optimizer(), spec.optimizer(), differ);
    }
  }
  return violations.ToStatus();
}

}  // namespace troupe

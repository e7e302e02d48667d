#include "plan/validate_axes.h"

#include <string>
#include <utility>

#include "model/config.h"

namespace troupe {
namespace {

bool HasExperts(const v1::JobSpec& spec) {
  return spec.model().pattern().find('E') != std::string::npos;
}

void ValidateContextAxis(const v1::JobSpec& spec, Violations* violations) {
  const auto& parallelism = spec.parallelism();
  const char* field = "parallelism.context_parallel_degree";
  const int64_t context = parallelism.context_parallel_degree();
  const int64_t tensor = parallelism.tensor_parallel_degree();
  if (context <= 1 || tensor < 1) return;
  if (parallelism.context_parallel_method() == "ring") {
    violations->Add("parallelism.context_parallel_method",
                    "is ring, with {} = {}; this build has all_to_all", field, context);
  }
  const int64_t tokens = spec.training().sequence_length();
  if (tokens % (2 * context) != 0) {
    violations->Add(field,
                    "is {}, and training.sequence_length = {} is no multiple of 2 × {}: every "
                    "rank has a head and a tail chunk",
                    context, tokens, context);
  }
  for (const auto& [name, heads] :
       {std::pair("model.num_attention_heads", spec.model().num_attention_heads()),
        std::pair("model.num_key_value_heads", spec.model().num_key_value_heads())}) {
    if (heads % (tensor * context) == 0) continue;
    violations->Add(field,
                    "is {}, and {} = {} is no multiple of tensor {} × context {}: all_to_all "
                    "gives each rank whole heads",
                    context, name, heads, tensor, context);
  }
}

void ValidateExpertAxis(const v1::JobSpec& spec, Violations* violations) {
  const char* field = "parallelism.expert_parallel_degree";
  const int64_t expert = spec.parallelism().expert_parallel_degree();
  const int64_t tensor = spec.parallelism().tensor_parallel_degree();
  if (!HasExperts(spec)) {
    if (expert > 1) {
      violations->Add(field, "is {} where model.pattern = \"{}\" has no block E", expert,
                      spec.model().pattern().substr(0, 200));
    }
    return;
  }
  violations->AddUnlessDivides(field, expert, "model.num_experts", spec.model().num_experts());
  if (tensor > 1 && expert > 1) {
    violations->Add("parallelism.sequence_parallel",
                    "is {}, and tensor_parallel_degree = {} beside expert_parallel_degree = {} "
                    "needs it",
                    spec.parallelism().sequence_parallel(), tensor, expert);
  }
  if (tensor > 1) {
    violations->Add("parallelism.tensor_parallel_degree",
                    "is {}; this build does not spread block E over tensor", tensor);
  }
  if (spec.parallelism().data_parallel_shard_degree() > 1) {
    violations->Add("parallelism.data_parallel_shard_degree",
                    "is {}; this build does not shard models with block E",
                    spec.parallelism().data_parallel_shard_degree());
  }
  if (spec.parallelism().context_parallel_degree() > 1) {
    violations->Add("parallelism.context_parallel_degree",
                    "is {}; this build does not spread block E over context",
                    spec.parallelism().context_parallel_degree());
  }
}

}  // namespace

void ValidateAxes(const v1::JobSpec& spec, Violations* violations) {
  const auto& model = spec.model();
  const char* field = "parallelism.tensor_parallel_degree";
  const int64_t tensor = spec.parallelism().tensor_parallel_degree();
  violations->AddUnlessDivides(field, tensor, "model.num_attention_heads",
                               model.num_attention_heads());
  violations->AddUnlessDivides(field, tensor, "model.num_key_value_heads",
                               model.num_key_value_heads());
  violations->AddUnlessDivides(field, tensor, "model.hidden_size", model.hidden_size());
  violations->AddUnlessDivides(field, tensor, "model.intermediate_size", model.intermediate_size());
  ValidateContextAxis(spec, violations);
  const auto& training = spec.training();
  const int64_t rows = training.micro_batch_size() * training.sequence_length();
  if (spec.parallelism().sequence_parallel() && rows > 0 && rows < tensor) {
    violations->Add("parallelism.sequence_parallel",
                    "is true, but the {} rows of a microbatch (training.micro_batch_size {} × "
                    "training.sequence_length {}) are below {} = {}",
                    rows, training.micro_batch_size(), training.sequence_length(), field, tensor);
  }
  if (tensor > model.vocab_size() && model.vocab_size() > 0) {
    violations->Add(field, "is {}, above model.vocab_size = {}", tensor, model.vocab_size());
  }
  ValidateExpertAxis(spec, violations);
}

}  // namespace troupe

#include "tests/layouts/axis_table.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/check.h"

namespace troupe {
namespace {

struct AxisForm {
  std::string_view name;
  std::string_view axis;  // two forms of one axis do not form a pair
  void (*spread)(v1::ParallelismSpec& parallelism, int degree);
};

void ShardUnder(int zero_stage, int degree, v1::ParallelismSpec& parallelism) {
  parallelism.set_data_parallel_shard_degree(degree);
  parallelism.set_zero_stage(zero_stage);
}

void ContextBy(const char* method, int degree, v1::ParallelismSpec& parallelism) {
  parallelism.set_context_parallel_degree(degree);
  parallelism.set_context_parallel_method(method);
}

constexpr AxisForm kForms[] = {
    {"Replicate", "data_replicate",
     [](v1::ParallelismSpec& p, int degree) { p.set_data_parallel_replicate_degree(degree); }},
    {"Zero1", "data_shard", [](v1::ParallelismSpec& p, int degree) { ShardUnder(1, degree, p); }},
    {"Zero2", "data_shard", [](v1::ParallelismSpec& p, int degree) { ShardUnder(2, degree, p); }},
    {"Zero3", "data_shard", [](v1::ParallelismSpec& p, int degree) { ShardUnder(3, degree, p); }},
    {"Zero1Whole", "data_shard",
     [](v1::ParallelismSpec& p, int degree) {
       ShardUnder(1, degree, p);
       p.set_shard_whole_matrices(true);
     }},
    {"Zero3Whole", "data_shard",
     [](v1::ParallelismSpec& p, int degree) {
       ShardUnder(3, degree, p);
       p.set_shard_whole_matrices(true);
     }},
    {"Tensor", "tensor",
     [](v1::ParallelismSpec& p, int degree) { p.set_tensor_parallel_degree(degree); }},
    {"TensorRows", "tensor",
     [](v1::ParallelismSpec& p, int degree) {
       p.set_tensor_parallel_degree(degree);
       p.set_sequence_parallel(true);
     }},
    {"TensorParts", "tensor",
     [](v1::ParallelismSpec& p, int degree) {
       p.set_tensor_parallel_degree(degree);
       p.set_tensor_parallel_parts(2);
     }},
    {"TensorRowsParts", "tensor",
     [](v1::ParallelismSpec& p, int degree) {
       p.set_tensor_parallel_degree(degree);
       p.set_sequence_parallel(true);
       p.set_tensor_parallel_parts(2);
     }},
    {"Ring", "context", [](v1::ParallelismSpec& p, int degree) { ContextBy("ring", degree, p); }},
    {"Exchange", "context",
     [](v1::ParallelismSpec& p, int degree) { ContextBy("all_to_all", degree, p); }},
    {"Pipe", "pipe",
     [](v1::ParallelismSpec& p, int degree) { p.set_pipeline_parallel_degree(degree); }},
};

const AxisForm& Form(std::string_view name) {
  const auto* const form = std::ranges::find(kForms, name, &AxisForm::name);
  TROUPE_CHECK(form != std::end(kForms), "no form of an axis is named {}", name);
  return *form;
}

}  // namespace

std::vector<AxisUses> AxesAlone() {
  std::vector<AxisUses> table;
  for (const AxisForm& form : kForms) {
    for (const int degree : {2, 4}) table.push_back({{std::string(form.name), degree}});
  }
  return table;
}

std::vector<AxisUses> PairsOfAxes() {
  std::vector<AxisUses> table;
  for (const AxisForm& first : kForms) {
    for (const AxisForm& second : kForms) {
      if (&first < &second && first.axis != second.axis)
        table.push_back({{std::string(first.name), 2}, {std::string(second.name), 2}});
    }
  }
  return table;
}

std::vector<AxisUses> MixesOfEight() {
  return {{{"Pipe", 2}, {"Zero3", 2}, {"Tensor", 2}},
          {{"Pipe", 2}, {"Zero1", 2}, {"TensorRows", 2}},
          {{"Ring", 2}, {"Zero3", 2}, {"TensorRows", 2}},
          {{"Exchange", 2}, {"Zero2", 2}, {"Tensor", 2}},
          {{"Replicate", 2}, {"Zero3", 2}, {"TensorRows", 2}},
          {{"Replicate", 2}, {"Ring", 2}, {"Pipe", 2}},
          {{"Ring", 4}, {"TensorRows", 2}},
          {{"Pipe", 4}, {"Zero2", 2}}};
}

std::vector<AxisUses> RowsOfSlices(std::vector<AxisUses> table) {
  std::erase_if(table, [](const AxisUses& uses) {
    const bool shards_whole =
        std::ranges::any_of(uses, [](const AxisUse& use) { return use.form.ends_with("Whole"); });
    return shards_whole || (uses.size() == 1 && uses[0].form == "Pipe");
  });
  return table;
}

void SetAxes(const AxisUses& uses, v1::ParallelismSpec* parallelism) {
  for (const AxisUse& use : uses) Form(use.form).spread(*parallelism, use.degree);
}

std::string NameOf(const AxisUses& uses) {
  std::string name;
  for (const AxisUse& use : uses) name += use.form + std::to_string(use.degree);
  return name.empty() ? "One" : name;
}

}  // namespace troupe

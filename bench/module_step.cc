#include "bench/module_step.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "bench/program_bench.h"
#include "model/build.h"
#include "model/initialize.h"

namespace troupe::bench {
namespace {

using kernels::xla::Buffer;
using kernels::xla::Client;

// Parameters by name, with their initial values.
class InitialParameters {
 public:
  explicit InitialParameters(const model::Program& program) {
    for (const model::State& state : program.states) {
      if (state.kind != model::StateKind::kWeight) continue;
      for (model::ParameterPart& part : PartsOf(program, state)) {
        const std::string name = part.name;
        parts_[name] = {state.initial, std::move(part)};
      }
    }
  }

  // The named parameters, whose rows follow each other, row-major.
  StatusOr<std::vector<float>> Find(const std::vector<std::string>& names) const {
    std::vector<float> numbers;
    for (const std::string& name : names) {
      const auto found = parts_.find(name);
      if (found == parts_.end()) return InvalidArgument("the model has no parameter {}", name);
      const auto& [initial, part] = found->second;
      int64_t count = 1;
      for (const int64_t extent : part.local_shape) count *= extent;
      const size_t begin = numbers.size();
      numbers.resize(begin + count);
      model::FillInitial(1, initial, part, 0, std::span(numbers).subspan(begin));
    }
    return numbers;
  }

 private:
  std::map<std::string, std::pair<model::InitialValue, model::ParameterPart>> parts_;
};

std::vector<float> Transposed(const std::vector<float>& numbers, const std::vector<int64_t>& dims) {
  std::vector<float> result(numbers.size());
  for (int64_t row = 0; row < dims[0]; ++row) {
    for (int64_t column = 0; column < dims[1]; ++column)
      result[row * dims[1] + column] = numbers[column * dims[0] + row];
  }
  return result;
}

int64_t BytesOf(const ModuleArgument& argument) {
  int64_t size = model::SizeOf(argument.dtype);
  for (const int64_t dim : argument.dims) size *= dim;
  return size;
}

Status CheckBytes(const ModuleArgument& argument, size_t bytes) {
  if (BytesOf(argument) == static_cast<int64_t>(bytes)) return OkStatus();
  return InvalidArgument("an argument ({}) of the module has {} bytes, and its contents {}",
                         argument.contents, BytesOf(argument), bytes);
}

StatusOr<std::unique_ptr<Buffer>> Upload(Client& client, const ModuleArgument& argument,
                                         std::span<const std::byte> bytes) {
  TROUPE_RETURN_IF_ERROR(CheckBytes(argument, bytes.size()));
  return client.Upload(argument.dtype, argument.dims, bytes, 0);
}

StatusOr<std::unique_ptr<Buffer>> Contents(Client& client, const ModuleArgument& argument,
                                           const InitialParameters& initial,
                                           const StepTokens& tokens) {
  if (argument.contents == "tokens")
    return Upload(client, argument, std::as_bytes(std::span(tokens.tokens)));
  if (argument.contents == "targets")
    return Upload(client, argument, std::as_bytes(std::span(tokens.targets)));
  if (argument.contents == "zeros")
    return Upload(client, argument, std::vector<std::byte>(BytesOf(argument)));
  TROUPE_ASSIGN_OR_RETURN(std::vector<float> numbers, initial.Find(argument.names));
  TROUPE_RETURN_IF_ERROR(CheckBytes(argument, numbers.size() * sizeof(float)));
  if (argument.contents == "transposed" && argument.dims.size() == 2)
    numbers = Transposed(numbers, argument.dims);
  return Upload(client, argument, std::as_bytes(std::span(numbers)));
}

}  // namespace

StatusOr<std::vector<ModuleArgument>> ParseModuleArguments(std::string_view text) {
  constexpr std::string_view kContents[] = {"parameter", "transposed", "zeros", "tokens",
                                            "targets"};
  std::vector<ModuleArgument> arguments;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string dtype, dims, names, word;
    ModuleArgument argument;
    words >> dtype >> dims >> argument.contents >> names;
    if ((dtype != "f32" && dtype != "i32") ||
        std::ranges::find(kContents, argument.contents) == std::end(kContents)) {
      return InvalidArgument("the line \"{}\" describes no argument of a module", line);
    }
    argument.dtype = dtype == "f32" ? model::DType::kFloat32 : model::DType::kInt32;
    for (std::istringstream list(dims); std::getline(list, word, ',');)
      if (word != "-") argument.dims.push_back(std::stoll(word));
    for (std::istringstream list(names); std::getline(list, word, '+');)
      argument.names.push_back(word);
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

StatusOr<std::unique_ptr<ModuleStep>> ModuleStep::Make(
    Client& client, const StepShape& shape, std::string_view module,
    const std::vector<ModuleArgument>& arguments) {
  auto step = std::make_unique<ModuleStep>();
  TROUPE_ASSIGN_OR_RETURN(step->program_, client.Compile(module, {}, 0));
  const model::BuildOptions options = StepOptions(shape);
  TROUPE_ASSIGN_OR_RETURN(const model::Program program, model::BuildProgram(options));
  const InitialParameters initial(program);
  const StepTokens tokens = RandomTokens(shape, options.model.vocab_size);
  for (const ModuleArgument& argument : arguments) {
    if (argument.contents != "tokens" && argument.contents != "targets")
      step->state_.push_back(step->arguments_.size());
    TROUPE_ASSIGN_OR_RETURN(auto buffer, Contents(client, argument, initial, tokens));
    step->arguments_.push_back(std::move(buffer));
  }
  return step;
}

StatusOr<double> ModuleStep::Run() {
  std::vector<const Buffer*> arguments;
  for (const auto& argument : arguments_) arguments.push_back(argument.get());
  TROUPE_ASSIGN_OR_RETURN(auto results, program_->Run(arguments));
  if (results.size() != state_.size() + 1) {
    return InvalidArgument("the module returns {} tensors, not {} and the loss", results.size(),
                           state_.size());
  }
  for (size_t i = 0; i < state_.size(); ++i) arguments_[state_[i]] = std::move(results[i]);
  float loss = 0;
  TROUPE_RETURN_IF_ERROR(results.back()->Read(std::as_writable_bytes(std::span(&loss, 1))));
  return loss;
}

}  // namespace troupe::bench

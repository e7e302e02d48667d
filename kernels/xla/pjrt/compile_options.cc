#include "kernels/xla/pjrt/compile_options.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message_lite.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "model/program/exact_number_options.h"
#include "xla/compile_options.pb.h"

namespace troupe::kernels::xla {
namespace {

// One replica of one computation for each device.
xla_messages::DeviceAssignment DeviceAssignment(std::span<const int> device_ids) {
  xla_messages::DeviceAssignment assignment;
  assignment.set_replica_count(1);
  assignment.set_computation_count(static_cast<int>(device_ids.size()));
  for (const int id : device_ids) assignment.add_computation_devices()->add_replica_device_ids(id);
  return assignment;
}

xla_messages::OptionOverride OptionOverride(const OptionValue& value) {
  xla_messages::OptionOverride option;
  if (const auto* text = std::get_if<std::string>(&value)) option.set_string_field(*text);
  if (const auto* flag = std::get_if<bool>(&value)) option.set_bool_field(*flag);
  if (const auto* number = std::get_if<int64_t>(&value)) option.set_int_field(*number);
  if (const auto* number = std::get_if<double>(&value)) option.set_double_field(*number);
  return option;
}

// Returns the bytes with the entries of maps in ascending order.
std::string SortedBytes(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream output(&stream);
  output.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&output);
  output.Trim();
  return bytes;
}

}  // namespace

Options WithExactNumbers(std::string_view platform, Options options) {
  for (const model::ExactNumberOption& exact : model::kExactNumberOptions) {
    if (exact.platform.empty() || exact.platform == platform) options.emplace(exact.name, false);
  }
  return options;
}

std::vector<std::string> OptionTexts(const Options& options) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : options) {
    texts.push_back(fmt::format(
        "{}={}", name, std::visit([](const auto& v) { return fmt::format("{}", v); }, value)));
  }
  return texts;
}

Options ParseOptionTexts(std::span<const std::string> texts) {
  Options options;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const std::string value = text.substr(equals + 1);
    OptionValue& option = options[text.substr(0, equals)];
    if (value == "true" || value == "false") {
      option = value == "true";
    } else {
      option = value;
    }
  }
  return options;
}

std::string CompileOptionBytes(const Options& options, std::span<const int> device_ids) {
  const bool is_divided = device_ids.size() > 1;
  xla_messages::CompileOptions message;
  xla_messages::BuildOptions& build = *message.mutable_executable_build_options();
  build.set_device_ordinal(-1);  // the assignment states the devices
  build.set_num_replicas(1);
  build.set_num_partitions(static_cast<int64_t>(device_ids.size()));
  build.set_use_spmd_partitioning(is_divided);
  *build.mutable_device_assignment() = DeviceAssignment(device_ids);
  build.set_use_shardy_partitioner(is_divided);
  auto& overrides = *message.mutable_env_option_overrides();
  for (const auto& [name, value] : options) overrides[name] = OptionOverride(value);
  return SortedBytes(message);
}

}  // namespace troupe::kernels::xla

#include "kernels/xla/pjrt/compile_options.h"

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "model/program/exact_number_options.h"

namespace troupe::kernels::xla {
namespace {

// The types of protobuf's wire format.
constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kBytes = 2;

void AppendVarint(uint64_t value, std::string* bytes) {
  for (; value >= 0x80; value >>= 7) bytes->push_back(static_cast<char>(value | 0x80));
  bytes->push_back(static_cast<char>(value));
}

void AppendTag(int field, int type, std::string* bytes) { AppendVarint(field << 3 | type, bytes); }

// A negative number takes ten bytes.
void AppendNumber(int field, int64_t value, std::string* bytes) {
  AppendTag(field, kVarint, bytes);
  AppendVarint(static_cast<uint64_t>(value), bytes);
}

// A string, a message or a packed list.
void AppendBytes(int field, std::string_view value, std::string* bytes) {
  AppendTag(field, kBytes, bytes);
  AppendVarint(value.size(), bytes);
  *bytes += value;
}

void AppendDouble(int field, double value, std::string* bytes) {
  AppendTag(field, kFixed64, bytes);
  const auto bits = std::bit_cast<uint64_t>(value);
  for (int byte = 0; byte < 8; ++byte) bytes->push_back(static_cast<char>(bits >> (8 * byte)));
}

// DeviceAssignmentProto: one replica of one computation for each device.
std::string DeviceAssignment(std::span<const int> device_ids) {
  std::string assignment;
  AppendNumber(1, 1, &assignment);                                        // replica_count
  AppendNumber(2, static_cast<int64_t>(device_ids.size()), &assignment);  // computation_count
  for (const int id : device_ids) {
    std::string ids;
    AppendVarint(id, &ids);
    std::string devices;
    AppendBytes(1, ids, &devices);         // replica_device_ids
    AppendBytes(3, devices, &assignment);  // computation_devices
  }
  return assignment;
}

// OptionOverrideProto.
std::string OptionOverride(const OptionValue& value) {
  std::string bytes;
  if (const auto* text = std::get_if<std::string>(&value)) AppendBytes(1, *text, &bytes);
  if (const auto* flag = std::get_if<bool>(&value)) AppendNumber(2, *flag ? 1 : 0, &bytes);
  if (const auto* number = std::get_if<int64_t>(&value)) AppendNumber(3, *number, &bytes);
  if (const auto* number = std::get_if<double>(&value)) AppendDouble(4, *number, &bytes);
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
  const auto partitions = static_cast<int64_t>(device_ids.size());
  std::string build;                                     // ExecutableBuildOptionsProto
  AppendNumber(1, -1, &build);                           // device_ordinal: by the assignment
  AppendNumber(4, 1, &build);                            // num_replicas
  AppendNumber(5, partitions, &build);                   // num_partitions
  if (partitions > 1) AppendNumber(6, 1, &build);        // use_spmd_partitioning
  AppendBytes(9, DeviceAssignment(device_ids), &build);  // device_assignment
  if (partitions > 1) AppendNumber(19, 1, &build);       // use_shardy_partitioner
  std::string bytes;
  AppendBytes(3, build, &bytes);  // executable_build_options
  for (const auto& [name, value] : options) {
    std::string entry;  // env_option_overrides, a map
    AppendBytes(1, name, &entry);
    AppendBytes(2, OptionOverride(value), &entry);
    AppendBytes(7, entry, &bytes);
  }
  return bytes;
}

}  // namespace troupe::kernels::xla

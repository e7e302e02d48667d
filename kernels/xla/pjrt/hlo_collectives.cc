#include "kernels/xla/pjrt/hlo_collectives.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace troupe::kernels::xla {
namespace {

// Numbers of fields in hlo.proto.
constexpr uint64_t kModule = 1, kComputations = 3, kInstructions = 2, kOpcode = 2;

constexpr std::string_view kCollectives[] = {"all-reduce",        "all-gather",
                                             "reduce-scatter",    "all-to-all",
                                             "ragged-all-to-all", "collective-permute"};

// Reads the fields of a message one by one.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  // Reads the next field of type "bytes" or "message" and skips others. False at the end, or if
  // the bytes are no message.
  bool Next();
  bool failed() const { return failed_; }
  uint64_t number() const { return number_; }
  std::string_view bytes() const { return bytes_; }

 private:
  enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  bool Fail() {
    failed_ = true;
    return false;
  }
  std::optional<uint64_t> Varint();
  bool Skip(uint64_t bytes) {
    if (bytes > rest_.size()) return false;
    rest_.remove_prefix(static_cast<size_t>(bytes));
    return true;
  }

  std::string_view rest_;
  uint64_t number_ = 0;
  std::string_view bytes_;
  bool failed_ = false;
};

std::optional<uint64_t> Fields::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

bool Fields::Next() {
  while (!rest_.empty()) {
    const std::optional<uint64_t> tag = Varint();
    if (!tag) return Fail();
    number_ = *tag >> 3;
    switch (*tag & 7) {
      case kVarint:
        if (!Varint()) return Fail();
        break;
      case kFixed64:
        if (!Skip(8)) return Fail();
        break;
      case kFixed32:
        if (!Skip(4)) return Fail();
        break;
      case kBytes: {
        const std::optional<uint64_t> size = Varint();
        if (!size || *size > rest_.size()) return Fail();
        bytes_ = rest_.substr(0, static_cast<size_t>(*size));
        return Skip(*size);
      }
      default:
        return Fail();
    }
  }
  return false;
}

void CountInstruction(std::string_view opcode, std::map<std::string, int>* counts) {
  constexpr std::string_view kStart = "-start";
  if (opcode.ends_with(kStart)) opcode.remove_suffix(kStart.size());
  for (const std::string_view collective : kCollectives) {
    if (opcode == collective) ++(*counts)[std::string(collective)];
  }
}

}  // namespace

StatusOr<std::string_view> ModuleOf(std::string_view module_with_config) {
  Fields fields(module_with_config);
  while (fields.Next()) {
    if (fields.number() == kModule) return fields.bytes();
  }
  return InvalidArgument("{} bytes of an optimized program are no HloModuleProtoWithConfig",
                         module_with_config.size());
}

StatusOr<std::map<std::string, int>> CountCollectives(std::string_view hlo_module) {
  std::map<std::string, int> counts;
  bool failed = false;
  Fields of_module(hlo_module);
  while (of_module.Next()) {
    if (of_module.number() != kComputations) continue;
    Fields of_computation(of_module.bytes());
    while (of_computation.Next()) {
      if (of_computation.number() != kInstructions) continue;
      Fields of_instruction(of_computation.bytes());
      while (of_instruction.Next()) {
        if (of_instruction.number() == kOpcode) CountInstruction(of_instruction.bytes(), &counts);
      }
      failed |= of_instruction.failed();
    }
    failed |= of_computation.failed();
  }
  if (failed || of_module.failed()) {
    return InvalidArgument("{} bytes of an optimized program are no HloModuleProto",
                           hlo_module.size());
  }
  return counts;
}

}  // namespace troupe::kernels::xla

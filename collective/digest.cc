#include "collective/digest.h"

namespace troupe {
namespace {

// FNV-1a, 64 bits.
constexpr uint64_t kOffset = 0xcbf29ce484222325u;
constexpr uint64_t kPrime = 0x100000001b3u;

uint64_t AddText(uint64_t value, std::string_view text) {
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * kPrime;
  return (value ^ text.size()) * kPrime;
}

// Multiplies by the whole word, then folds the high bits down, because a multiplication alone never
// moves them down.
uint64_t AddWord(uint64_t value, uint64_t word) {
  value = (value ^ word) * 0x9E3779B97F4A7C15u;
  return value ^ (value >> 29);
}

}  // namespace

OperationDigest::OperationDigest(std::string_view group) : value_(AddText(kOffset, group)) {}

void OperationDigest::Add(CollectiveOperation operation, size_t bytes, std::string_view reduction,
                          Purpose purpose) {
  if (operation == CollectiveOperation::kReceive) operation = CollectiveOperation::kSend;
  value_ =
      AddWord(value_, (static_cast<uint64_t>(operation) << 8) | static_cast<uint64_t>(purpose));
  value_ = AddWord(value_, bytes);
  value_ = AddText(value_, reduction);
}

}  // namespace troupe

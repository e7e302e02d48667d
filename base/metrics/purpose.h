// The purpose of a collective. Every operation carries one.
#ifndef TROUPE_BASE_METRICS_PURPOSE_H_
#define TROUPE_BASE_METRICS_PURPOSE_H_

#include <cstdint>
#include <iterator>
#include <string_view>

#include "base/check.h"

namespace troupe {

enum class Purpose : uint8_t {
#define TROUPE_PURPOSE(Kind, name) k##Kind,
#include "base/metrics/purposes.def"
};

inline constexpr std::string_view kPurposeNames[] = {
#define TROUPE_PURPOSE(Kind, name) #name,
#include "base/metrics/purposes.def"
};

inline constexpr int kPurposes = std::size(kPurposeNames);

// "tensor", "sequence", …
inline std::string_view Name(Purpose purpose) {
  const auto index = static_cast<int>(purpose);
  TROUPE_CHECK(index < kPurposes, "purpose {} has no name", index);
  return kPurposeNames[index];
}

}  // namespace troupe

#endif  // TROUPE_BASE_METRICS_PURPOSE_H_

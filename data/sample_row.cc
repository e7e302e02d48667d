#include "data/sample_row.h"

#include "base/check.h"

namespace troupe {

void SampleRow::Add(std::string_view channel, std::span<int32_t> values) {
  AddValues(channel, values);
}

void SampleRow::Add(std::string_view channel, std::span<float> values) {
  AddValues(channel, values);
}

std::span<int32_t> SampleRow::Int32s(std::string_view channel) const {
  return Find<int32_t>(channel);
}

std::span<float> SampleRow::Float32s(std::string_view channel) const {
  return Find<float>(channel);
}

void SampleRow::AddValues(std::string_view channel, Values values) {
  for (const Wanted& other : wanted_) {
    TROUPE_CHECK(other.channel != channel, "channel {} appears twice in a row of samples", channel);
  }
  wanted_.push_back({channel, values});
}

template <typename T>
std::span<T> SampleRow::Find(std::string_view channel) const {
  for (const Wanted& wanted : wanted_) {
    if (wanted.channel != channel) continue;
    const auto* const values = std::get_if<std::span<T>>(&wanted.values);
    TROUPE_CHECK(values != nullptr, "channel {} has another type", channel);
    return *values;
  }
  return {};
}

}  // namespace troupe

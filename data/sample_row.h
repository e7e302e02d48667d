// One sample to fill, channel by channel: a view of memory that its creator owns
// (data/sample_batch.h).
#ifndef TROUPE_DATA_SAMPLE_ROW_H_
#define TROUPE_DATA_SAMPLE_ROW_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

class SampleRow {
 public:
  // Requests `channel`; its elements are written to `values`. Name and values must outlive the row.
  // REQUIRES: the row does not have the channel yet.
  void Add(std::string_view channel, std::span<int32_t> values);
  void Add(std::string_view channel, std::span<float> values);

  // Returns the destination of the channel, empty if it was not requested. REQUIRES: the channel
  // has that type.
  std::span<int32_t> Int32s(std::string_view channel) const;
  std::span<float> Float32s(std::string_view channel) const;

 private:
  using Values = std::variant<std::span<int32_t>, std::span<float>>;
  struct Wanted {
    std::string_view channel;
    Values values;
  };

  void AddValues(std::string_view channel, Values values);
  template <typename T>
  std::span<T> Find(std::string_view channel) const;

  std::vector<Wanted> wanted_;
};

}  // namespace troupe

#endif  // TROUPE_DATA_SAMPLE_ROW_H_

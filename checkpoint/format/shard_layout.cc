#include "checkpoint/format/shard_layout.h"

#include <map>
#include <utility>

#include "base/check.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/format/safetensors.h"

namespace troupe {

StatusOr<ShardLayout> LayOutShard(int rank, const std::vector<GlobalSlice>& slices) {
  TROUPE_CHECK(rank >= 0);
  for (const GlobalSlice& slice : slices) TROUPE_RETURN_IF_ERROR(ValidateSlice(slice));
  const std::vector<std::string> keys = FileKeys(slices);
  std::map<std::string, size_t> index_of_key;
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata{{"troupe_format", "1"}};
  for (size_t i = 0; i < keys.size(); ++i) {
    const GlobalSlice& slice = slices[i];
    index_of_key[keys[i]] = i;
    entries.push_back({.name = keys[i], .dtype = slice.dtype, .shape = slice.box.shape});
    metadata[keys[i]] =
        fmt::format(R"({{"name":"{}","global_shape":[{}],"global_offset":[{}]}})", slice.name,
                    fmt::join(slice.global_shape, ","), fmt::join(slice.box.offset, ","));
  }
  ShardLayout layout;
  TROUPE_ASSIGN_OR_RETURN(layout.head, LayOutSafetensors(entries, metadata));
  layout.offsets.resize(slices.size());
  layout.bytes = static_cast<int64_t>(layout.head.size());
  layout.shard.set_name(ShardFileName(rank));
  layout.shard.set_rank(rank);
  for (const SafetensorsEntry& entry : entries) {
    const size_t i = index_of_key.at(entry.name);
    const GlobalSlice& slice = slices[i];
    layout.order.push_back(i);
    layout.offsets[i] = layout.bytes;
    layout.bytes += entry.end - entry.begin;
    v1::TensorSlice& tensor = *layout.shard.add_tensors();
    tensor.set_name(slice.name);
    tensor.set_dtype(slice.dtype);
    tensor.mutable_global_shape()->Assign(slice.global_shape.begin(), slice.global_shape.end());
    tensor.mutable_global_offset()->Assign(slice.box.offset.begin(), slice.box.offset.end());
    tensor.mutable_shape()->Assign(slice.box.shape.begin(), slice.box.shape.end());
    tensor.set_data_begin(entry.begin);
    tensor.set_data_end(entry.end);
  }
  return layout;
}

}  // namespace troupe

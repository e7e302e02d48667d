// An untrusted manifest is either refused, or a complete read of every tensor that it names can be
// planned from within its files.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/check.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/format/sample_channels.h"
#include "checkpoint/read/reshard.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace troupe;
  const auto manifest =
      ManifestFromJson(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!manifest.ok()) return 0;
  // Channels are known to this build or refused by name, and never more than a schema can have.
  TROUPE_CHECK(manifest->samples().channels_size() <= SampleSchema::kChannelsMax);
  const Status known = CheckSampleChannels(manifest->samples(), CurrentSampleSchema());
  TROUPE_CHECK(known.ok() || known.code() == StatusCode::kFailedPrecondition);
  TROUPE_CHECK(Message(known).size() < 1000);
  std::map<std::string, GlobalSlice> whole;
  for (const v1::ShardFile& shard : manifest->shards()) {
    TROUPE_CHECK(shard.name().find('/') == std::string::npos && shard.name() != "..");
    for (const v1::TensorSlice& tensor : shard.tensors()) {
      GlobalSlice slice = SliceOf(tensor);
      slice.box = {Extents(slice.global_shape.size(), 0), slice.global_shape};
      whole[slice.name] = std::move(slice);
    }
  }
  std::vector<GlobalSlice> wanted;
  for (const auto& [name, slice] : whole) wanted.push_back(slice);
  const auto reads = PlanReads(*manifest, wanted);
  TROUPE_CHECK_OK(reads.status());
  for (const SliceRead& read : *reads) {
    const v1::ShardFile& shard = manifest->shards(read.shard);
    const v1::TensorSlice& tensor = shard.tensors(read.tensor);
    TROUPE_CHECK(tensor.data_begin() >= 0 && tensor.data_end() <= shard.bytes());
  }
  const auto json = ManifestToJson(*manifest);
  TROUPE_CHECK_OK(json.status());
  TROUPE_CHECK_OK(ManifestFromJson(*json).status());
  return 0;
}

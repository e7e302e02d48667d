// The manifest of a checkpoint: `manifest.json` next to the shards, a CheckpointManifest in
// protobuf's JSON mapping with the field names kept. It describes the whole directory, so that
// nothing else is needed to read the checkpoint or to rebuild the catalog.
//
// Invariants, which AKillAtAnyPointLeavesNothingThatReadsAsACheckpoint
// (checkpoint/read/round_trip_test.cc) checks for writes, and attempt_test.cc for the removal:
// - A directory with a manifest has every shard that the manifest names, durable before the
//   manifest is. A removal begins with the manifest (checkpoint/format/attempt.h).
// - A shard or a manifest never changes once it has its name, and is never written again.
#ifndef TROUPE_CHECKPOINT_FORMAT_MANIFEST_H_
#define TROUPE_CHECKPOINT_FORMAT_MANIFEST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/format/safetensors.h"
#include "checkpoint/format/slice.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

inline constexpr char kManifestFileName[] = "manifest.json";
// Longer manifests are refused.
inline constexpr int64_t kManifestBytesMax = int64_t{512} << 20;
inline constexpr int kManifestFormatVersion = 2;

// Converts `tensor` without checking it.
GlobalSlice SliceOf(const v1::TensorSlice& tensor);

// Returns the names of `slices` within one safetensors file: the global name, or
// `name@offset,offset` for each slice if there are several of one tensor.
std::vector<std::string> FileKeys(const std::vector<GlobalSlice>& slices);

// Checks that a checkpoint can be loaded from the manifest; otherwise INVALID_ARGUMENT names file,
// tensor and value. The format version is known; the sample channels are ones that some build could
// have recorded; file names are plain (no `/`, no leading dot, ASCII) and distinct; sizes, digests
// and block checksums have the right form and number; slices are valid, and their data are within
// the file and have the slice's size; each tensor has one dtype and one global shape; and every
// element of every global tensor is in exactly one slice.
Status ValidateManifest(const v1::CheckpointManifest& manifest);

// INVALID_ARGUMENT unless the file's header describes exactly the tensors that the manifest states.
Status MatchHeader(const v1::ShardFile& shard, const SafetensorsHeader& header);

// Returns the text of the manifest file. Does not check `manifest`.
StatusOr<std::string> ManifestToJson(const v1::CheckpointManifest& manifest);

// Parses and validates the text. INVALID_ARGUMENT if it is not a valid manifest.
StatusOr<v1::CheckpointManifest> ManifestFromJson(std::string_view json);

// The limit in bytes of an attempt's manifest, and of one rank's part of it. Each is sent between a
// worker and the coordinator in one message, and either end accepts 64 MiB.
inline constexpr size_t kCheckpointMessageBytesMax = size_t{60} << 20;

struct WrittenManifest {
  std::string digest;  // digest of the manifest file
  int64_t bytes = 0;   // total of the manifest file and all shards
};

// Validates the manifest, then writes `directory`/manifest.json durably (base/durable_write.h). OK
// if the file exists with the same bytes, ALREADY_EXISTS if the file differs. Failpoints
// checkpoint.manifest.*.
StatusOr<WrittenManifest> WriteManifest(FileSystem& files, const std::string& directory,
                                        const v1::CheckpointManifest& manifest);

// Reads the manifest, compares it with `digest` unless that is empty, parses and validates it.
// DATA_LOSS if the digest differs; NOT_FOUND if there is no manifest, which means that the
// directory is not a checkpoint.
StatusOr<v1::CheckpointManifest> ReadManifest(FileSystem& files, const std::string& directory,
                                              std::string_view digest);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_FORMAT_MANIFEST_H_

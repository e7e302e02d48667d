// The manifest of a checkpoint: `manifest.json` beside the shards, CheckpointManifest in protobuf's
// JSON mapping with field names kept. It describes the whole directory, so that a checkpoint can be
// read and the catalog rebuilt without anything else.
#ifndef TROUPE_CHECKPOINT_MANIFEST_H_
#define TROUPE_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/slice.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

inline constexpr char kManifestFileName[] = "manifest.json";
inline constexpr int kManifestFormatVersion = 2;

// What `tensor` holds, unchecked.
GlobalSlice SliceOf(const v1::TensorSlice& tensor);

// The names of `slices` within one safetensors file: the global name, or `name@offset,offset` for
// each of several slices of one tensor.
std::vector<std::string> FileKeys(const std::vector<GlobalSlice>& slices);

// INVALID_ARGUMENT naming file, tensor and value unless the manifest is one that a checkpoint can
// be loaded from: known format version; channels of samples that could be some build's; file names plain (no `/`, no leading dot, ASCII) and
// different; sizes, digests and block checksums of the right form and number; slices valid, their
// data within their file and of their size; one dtype and global shape a tensor; and every element
// of every global tensor in exactly one slice.
Status ValidateManifest(const v1::CheckpointManifest& manifest);

// INVALID_ARGUMENT unless the file's own header describes exactly the tensors that the manifest
// states.
Status MatchHeader(const v1::ShardFile& shard, const SafetensorsHeader& header);

// The text of the file. `manifest` is not checked.
StatusOr<std::string> ManifestToJson(const v1::CheckpointManifest& manifest);

// Parsed and validated; INVALID_ARGUMENT otherwise.
StatusOr<v1::CheckpointManifest> ManifestFromJson(std::string_view json);

// The most bytes of an attempt's manifest, and of one rank's part of it, as messages: each travels
// between a worker and the coordinator in one, of which either end takes in 64 MiB.
inline constexpr size_t kCheckpointMessageBytesMax = size_t{60} << 20;

struct WrittenManifest {
  std::string digest;  // of the file
  int64_t bytes = 0;   // of the file and all shards
};

// Validates, then writes `directory`/manifest.json: temporary file, fsync, rename, fsync of the
// directory. Durable on return. One that is there already with the same bytes is as good, another
// one ALREADY_EXISTS. Failpoints checkpoint.manifest.*.
StatusOr<WrittenManifest> WriteManifest(FileSystem& files, const std::string& directory,
                                        const v1::CheckpointManifest& manifest);

// Reads, checks against `digest` unless that is empty, parses and validates. DATA_LOSS where the
// digest differs, NOT_FOUND where there is no manifest: the directory is no checkpoint.
StatusOr<v1::CheckpointManifest> ReadManifest(FileSystem& files, const std::string& directory,
                                              std::string_view digest);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_MANIFEST_H_

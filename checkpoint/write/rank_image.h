// A rank image: the whole state of one rank, stored on its worker when the job's folder cannot be
// written. It is one shard file with everything that the rank holds, and `image.json`
// (ImageManifest), which describes it. Only the same rank of the same layout can resume from it.
//
// Invariant: image.json appears once the shard that it describes is durable, and a removal begins
// with it.
#ifndef TROUPE_CHECKPOINT_WRITE_RANK_IMAGE_H_
#define TROUPE_CHECKPOINT_WRITE_RANK_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/write/shard_writer.h"
#include "troupe/v1/checkpoint.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// Returns "ROOT/JOB/step-00000050-epoch-2-rank-00003".
std::string ImageDirectory(const std::string& root, const std::string& job, int64_t step,
                           uint64_t group_epoch, int rank);

// Durably writes the image into `directory` and replaces files of an earlier try. `manifest` has
// every field except the shard. Returns the digest of image.json. Errors: as WriteShard.
StatusOr<std::string> WriteRankImage(FileSystem& files, const std::string& directory,
                                     v1::ImageManifest manifest,
                                     const std::vector<ShardTensor>& tensors);

// Returns the description of the image as the manifest of a checkpoint with one shard, to load
// from. NOT_FOUND if there is no image, DATA_LOSS unless its digest is `digest`.
StatusOr<v1::CheckpointManifest> ReadRankImage(FileSystem& files, const std::string& directory,
                                               std::string_view digest);

// Returns the paths of the images under `root`, complete or not; none if `root` is absent. The
// number of paths is limited.
inline constexpr size_t kMostImagesFound = 4096;
StatusOr<std::vector<v1::HeldImage>> FindRankImages(FileSystem& files, const std::string& root);

// Removes the image. OK if there is none. FAILED_PRECONDITION unless `directory` has the name of an
// image under `root`.
Status DeleteRankImage(FileSystem& files, const std::string& root, const std::string& directory);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_WRITE_RANK_IMAGE_H_

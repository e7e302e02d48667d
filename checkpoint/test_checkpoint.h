// Small checkpoints for tests, written by the product itself.
#ifndef TROUPE_CHECKPOINT_TEST_CHECKPOINT_H_
#define TROUPE_CHECKPOINT_TEST_CHECKPOINT_H_

#include <map>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

// Rows of four float32 numbers, by name.
using TestTensors = std::map<std::string, std::vector<float>>;

// Writes a checkpoint into `directory` whose tensors are cut by rows over `ranks` ranks, with
// everything else of the manifest as in `of`. Returns the digest of its manifest.
std::string WriteTestCheckpoint(FileSystem& files, const std::string& directory,
                                const TestTensors& tensors, int ranks,
                                v1::CheckpointManifest of = {});

// Replaces the file by what `change` makes of its bytes.
void ChangeFile(FileSystem& files, const std::string& path, void (*change)(std::string& bytes));

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_TEST_CHECKPOINT_H_

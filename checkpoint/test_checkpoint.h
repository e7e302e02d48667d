// Small checkpoints for tests, written by the product's own code.
#ifndef TROUPE_CHECKPOINT_TEST_CHECKPOINT_H_
#define TROUPE_CHECKPOINT_TEST_CHECKPOINT_H_

#include <map>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

// Rows of four float32 elements, by tensor name.
using TestTensors = std::map<std::string, std::vector<float>>;

// Writes a checkpoint into `directory`, its tensors split by rows over `ranks` ranks, with all
// other manifest fields as in `of`. Returns the digest of its manifest.
std::string WriteTestCheckpoint(FileSystem& files, const std::string& directory,
                                const TestTensors& tensors, int ranks,
                                v1::CheckpointManifest of = {});

// Applies `change` to the bytes of the file and rewrites it.
void ChangeFile(FileSystem& files, const std::string& path, void (*change)(std::string& bytes));

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_TEST_CHECKPOINT_H_

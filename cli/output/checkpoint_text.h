// The texts for people of the commands that read a checkpoint. Each has its sizes in one style; -o
// json has the bytes. Paths below style.directory are relative to it. Pure.
#ifndef TROUPE_CLI_OUTPUT_CHECKPOINT_TEXT_H_
#define TROUPE_CLI_OUTPUT_CHECKPOINT_TEXT_H_

#include <cstdint>
#include <string>

#include "checkpoint/read/diff.h"
#include "checkpoint/read/verify.h"
#include "cli/output/text_style.h"
#include "interop/export.h"
#include "interop/import.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

// Returns the state of the checkpoint, and a table of its files with the tensors of each below it.
// Where the table is too wide, digests are shortened.
std::string ManifestText(const v1::CheckpointManifest& manifest, const TextStyle& style);

// Returns that the checkpoint in `path` is whole. Below a path with which this does not fit, as in
// the other texts with paths, it has a line of its own. REQUIRES: the report has no failure.
std::string VerifiedText(const std::string& path, const VerifyReport& report,
                         const TextStyle& style);

// Returns the tensors that differ, and by how much, and the result of the comparison. A tensor has
// one line; where one does not fit, each has its name on a line of its own.
std::string DifferenceText(const CheckpointDifference& difference, int64_t step_a, int64_t step_b,
                           const TextStyle& style);

// Returns what the checkpoint in `path` has been made of, and the digest of its manifest.
std::string ImportText(const std::string& path, const ImportResult& result, const TextStyle& style);

// Returns what `directory` has got, and which files were copied into it.
std::string ExportText(const std::string& directory, const ExportResult& result,
                       const TextStyle& style);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_CHECKPOINT_TEXT_H_

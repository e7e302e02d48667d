#include "model/select_trained.h"

#include <algorithm>
#include <utility>

#include "model/build.h"
#include "model/program/weight_decay.h"

namespace troupe::model {
namespace {

// The whole model on one rank: the embedding, each block and the head are chunks of their own.
BuildOptions ByBlock(const ModelConfig& model) {
  BuildOptions options;
  options.model = model;
  options.sequence_length = 1;
  options.overlap = options.fuse = options.runs = false;
  const int blocks = model.num_blocks();
  options.chunks.push_back({.chunk = 0, .has_embedding = true});
  for (int block = 0; block < blocks; ++block)
    options.chunks.push_back({.chunk = block + 1, .first_block = block, .block_count = 1});
  options.chunks.push_back({.chunk = blocks + 1, .first_block = blocks, .has_head = true});
  return options;
}

// Refuses globs that match some, but not all of the tensors of a parameter.
Status CheckWhole(const ParameterEntry& entry, const TrainedParameters& trained) {
  const auto includes = [&](const ParameterPart& part) { return trained.Includes(part.name); };
  const auto in = std::ranges::find_if(entry.parts, includes);
  const auto out = std::ranges::find_if_not(entry.parts, includes);
  if (in == entry.parts.end() || out == entry.parts.end()) return OkStatus();
  return InvalidArgument(
      "matches {} but not {}; they are stored as one matrix, of which all is trained or nothing",
      in->name, out->name);
}

}  // namespace

StatusOr<TrainedParameters> SelectTrained(const ModelConfig& model,
                                          std::vector<std::string> globs) {
  TrainedParameters trained = {.globs = std::move(globs), .blocks = {}};
  if (trained.globs.empty()) return trained;
  TROUPE_ASSIGN_OR_RETURN(const Program program, BuildProgram(ByBlock(model)));
  std::vector<std::string> names;
  for (const ParameterEntry& entry : program.parameters) {
    TROUPE_RETURN_IF_ERROR(CheckWhole(entry, trained));
    for (const ParameterPart& part : entry.parts) names.push_back(part.name);
    if (trained.Includes(entry.parts.front().name))
      trained.blocks.insert(program.value(entry.value).chunk - 1);
  }
  // A tied table is the head's too.
  if (model.tie_word_embeddings && trained.blocks.contains(-1))
    trained.blocks.insert(model.num_blocks());
  for (const std::string& glob : trained.globs) {
    const bool matches = std::ranges::any_of(
        names, [&](const std::string& name) { return MatchesGlob(glob, name); });
    if (!matches) return InvalidArgument("\"{}\" matches no parameter of the model", glob);
  }
  return trained;
}

}  // namespace troupe::model

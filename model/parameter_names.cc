#include "model/parameter_names.h"

#include <utility>

#include "model/build.h"

namespace troupe::model {

StatusOr<std::vector<std::string>> ParameterNames(const ModelConfig& model) {
  BuildOptions options;
  options.model = model;
  options.chunks = {{.chunk = 0,
                     .first_block = 0,
                     .block_count = model.num_blocks(),
                     .has_embedding = true,
                     .has_head = true}};
  options.sequence_length = 1;
  options.overlap = options.fuse = false;
  TROUPE_ASSIGN_OR_RETURN(Program program, BuildProgram(options));
  std::vector<std::string> names;
  for (ParameterEntry& entry : program.parameters) {
    for (ParameterPart& part : entry.parts) names.push_back(std::move(part.name));
  }
  return names;
}

}  // namespace troupe::model

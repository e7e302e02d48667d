// A YAML document as a node of yaml-cpp, and the places in it that errors name. Pure.
#ifndef TROUPE_PLAN_JOB_YAML_DOCUMENT_H_
#define TROUPE_PLAN_JOB_YAML_DOCUMENT_H_

#include <yaml-cpp/yaml.h>

#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

// The origin of a YAML text, as errors name it.
struct YamlSource {
  std::string name;       // "job.yaml", "--set training.steps"
  bool has_lines = true;  // errors add line and column
};

// Returns "job.yaml:3:5", the line and the column of `mark`, or the name of the source alone if it
// has no lines. Both count from 1; a column is a byte of its line.
std::string PlaceIn(const YamlSource& source, const YAML::Mark& mark);

// Returns the only document of `text`, a null node if it is empty. INVALID_ARGUMENT with a place,
// "job.yaml:3:5: …", if it is not YAML or has several documents. Throws nothing.
StatusOr<YAML::Node> LoadYaml(std::string_view text, const YamlSource& source);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_YAML_DOCUMENT_H_

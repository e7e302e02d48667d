// The jobs that `troupe list` shows. Pure.
#ifndef TROUPE_CLI_OUTPUT_LIST_FILTER_H_
#define TROUPE_CLI_OUTPUT_LIST_FILTER_H_

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

class ListFilter {
 public:
  // Jobs in one of `states`, or in any if there is none, and in the namespace `in_namespace`, or in
  // any. A state is a word of StateText, in upper or lower case: a job that moves has two.
  // INVALID_ARGUMENT for a word that is no state, and for a text that is no name of a namespace.
  static StatusOr<ListFilter> Make(std::vector<std::string> states,
                                   std::optional<std::string> in_namespace);

  bool Accepts(const v1::Job& job) const;

  // Returns a sentence that states that none of the cluster's `jobs` jobs is accepted, "none of 3
  // jobs is QUEUED or RUNNING in the namespace lab".
  std::string NoneText(size_t jobs) const;

 private:
  std::vector<std::string> states_;
  std::optional<std::string> namespace_;
};

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_LIST_FILTER_H_

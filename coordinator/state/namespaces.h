// The namespaces of a cluster (proto/troupe/v1/namespace.proto): who may use the jobs of each, and
// with which limits. Pure; immutable after Parse, so thread-safe.
//
// Without namespaces (a null pointer) everyone may use every job, and nothing is limited.
#ifndef TROUPE_COORDINATOR_STATE_NAMESPACES_H_
#define TROUPE_COORDINATOR_STATE_NAMESPACES_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/security/identity.h"
#include "base/status.h"
#include "troupe/v1/namespace.pb.h"

namespace troupe {

class Namespaces {
 public:
  // Parses the text of a namespace file. INVALID_ARGUMENT has a line for each error, which names
  // the field, its value and the relation that fails; `file_name` is for these texts.
  static StatusOr<std::shared_ptr<const Namespaces>> Parse(std::string_view text,
                                                           std::string_view file_name);

  // Returns null if there is no such namespace.
  const v1::Namespace* Find(std::string_view name) const;
  // Returns the namespace of the job with this id; null if it does not exist.
  const v1::Namespace* FindOf(std::string_view job_id) const;

  // Whether `caller` may see the job with this id, existing or not. Operators see every job.
  bool Sees(const Identity& caller, std::string_view job_id) const;

 private:
  explicit Namespaces(const v1::NamespaceFile& file);

  std::map<std::string, v1::Namespace, std::less<>> by_name_;
};

// Returns the namespace of the job with this id; null if it does not exist, or if there are none.
inline const v1::Namespace* FindNamespaceOf(const Namespaces* namespaces, std::string_view job_id) {
  return namespaces == nullptr ? nullptr : namespaces->FindOf(job_id);
}

// PERMISSION_DENIED, naming job, namespace and caller, unless Sees. The answer does not depend on
// whether the job or the namespace exists.
Status CheckSees(const Namespaces& namespaces, const Identity& caller, std::string_view job_id);

// INVALID_ARGUMENT with the field `name` if the namespace of the job does not exist.
Status CheckExists(const Namespaces& namespaces, std::string_view job_id);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_NAMESPACES_H_

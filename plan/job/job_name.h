// The resource name of a job, "jobs/{id}", its id, and the namespace that is a part of the id.
// Thread-safe.
#ifndef TROUPE_PLAN_JOB_JOB_NAME_H_
#define TROUPE_PLAN_JOB_JOB_NAME_H_

#include <string>
#include <string_view>

namespace troupe {

inline constexpr std::string_view kDefaultNamespace = "default";

// The form of the name of a namespace, and of a job within it.
inline constexpr std::string_view kNamePattern = "[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?";

// Whether `text` has the form kNamePattern.
bool IsName(std::string_view text);
// Whether `text` may be the id of a job: a name, or two with a dot between them.
bool IsJobId(std::string_view text);

// Returns "lab" for "lab.run1", and kDefaultNamespace for an id without a dot. The result is a part
// of `id`, or a constant.
std::string_view NamespaceOf(std::string_view id);

// Returns "x" for "jobs/x", or `name` itself if it has no such prefix.
std::string JobId(const std::string& name);
// Returns "jobs/x" for "x" and for "jobs/x".
std::string JobName(const std::string& id_or_name);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_JOB_NAME_H_

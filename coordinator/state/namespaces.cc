#include "coordinator/state/namespaces.h"

#include <algorithm>
#include <set>
#include <utility>

#include "plan/job/job_file.h"
#include "plan/job/job_name.h"
#include "plan/job/key_schema.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;

constexpr std::string_view kEveryName = "*";
constexpr size_t kShownBytes = 200;  // at most, of a text in a refusal

std::string_view Shown(std::string_view text) { return text.substr(0, kShownBytes); }

// `path`: the path of the quota, with a dot at its end.
void CheckQuotaKeys(const v1::Quota& quota, const std::string& path, Violations* violations) {
  for (int i = 0; i < v1::Quota::descriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *v1::Quota::descriptor()->field(i);
    const v1::KeyOptions& options = KeyOptionsOf(field);
    if (!options.has_min() || !quota.GetReflection()->HasField(quota, &field)) continue;
    const int64_t value = quota.GetReflection()->GetInt64(quota, &field);
    if (IsInRange(options, static_cast<double>(value))) continue;
    violations->Add(path + field.name(),
                    "is {}; it must be at least {}; leave the key out for no limit", value,
                    options.min());
  }
}

void CheckRoots(const v1::PathRoots& roots, const std::string& path, Violations* violations) {
  for (int i = 0; i < v1::PathRoots::descriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *v1::PathRoots::descriptor()->field(i);
    if (!roots.GetReflection()->HasField(roots, &field)) continue;
    const std::string root = roots.GetReflection()->GetString(roots, &field);
    if (root.empty()) {
      violations->Add(path + field.name(), "is empty; leave the key out for no root");
    } else if (root.front() != '/') {
      violations->Add(path + field.name(), "is {}, not an absolute path", Shown(root));
    } else if ((root + "/").find("/../") != std::string::npos) {
      violations->Add(path + field.name(), "is {}, which contains ..", Shown(root));
    } else if (root.find('\0') != std::string::npos) {
      violations->Add(path + field.name(), "has a zero byte");
    }
  }
}

// Returns the fault of a member; empty if there is none.
std::string MemberFault(const std::string& member) {
  const size_t slash = member.find('/');
  if (slash == std::string::npos) return "which has not the form ROLE/NAME";
  const auto role = ParseRole(member.substr(0, slash));
  if (!role.ok()) return std::string(Message(role.status()));
  if (*role != Role::kViewer && *role != Role::kSubmitter)
    return "but only viewers and submitters are members; operators may use every namespace";
  const std::string name = member.substr(slash + 1);
  if (name == kEveryName) return {};
  const Status good = CheckIdentityName("the name", name);
  return good.ok() ? std::string() : std::string(Message(good));
}

void CheckMembers(const v1::Namespace& space, const std::string& path, Violations* violations) {
  for (int i = 0; i < space.members_size(); ++i) {
    const std::string fault = MemberFault(space.members(i));
    if (fault.empty()) continue;
    violations->Add(fmt::format("{}members[{}]", path, i), "is \"{}\", {}", Shown(space.members(i)),
                    fault);
  }
}

Status CheckFile(const v1::NamespaceFile& file) {
  Violations violations;
  if (file.namespaces().empty()) violations.Add("namespaces", "is required");
  std::set<std::string> names;
  for (int i = 0; i < file.namespaces_size(); ++i) {
    const v1::Namespace& space = file.namespaces(i);
    const std::string path = fmt::format("namespaces[{}].", i);
    if (!space.has_name()) {
      violations.Add(path + "name", "is required");
    } else if (!IsName(space.name())) {
      violations.Add(path + "name", "is \"{}\", which does not match {}", Shown(space.name()),
                     kNamePattern);
    } else if (!names.insert(space.name()).second) {
      violations.Add(path + "name", "is \"{}\", which another namespace has too", space.name());
    }
    CheckMembers(space, path, &violations);
    CheckQuotaKeys(space.quota(), path + "quota.", &violations);
    CheckRoots(space.roots(), path + "roots.", &violations);
  }
  return violations.ToStatus();
}

}  // namespace

StatusOr<std::shared_ptr<const Namespaces>> Namespaces::Parse(std::string_view text,
                                                              std::string_view file_name) {
  v1::NamespaceFile file;
  TROUPE_RETURN_IF_ERROR(ParseKeys(text, file_name, &file));
  TROUPE_RETURN_IF_ERROR(Annotate(CheckFile(file), file_name));
  return std::shared_ptr<const Namespaces>(new Namespaces(file));
}

Namespaces::Namespaces(const v1::NamespaceFile& file) {
  for (const v1::Namespace& space : file.namespaces()) by_name_[space.name()] = space;
}

const v1::Namespace* Namespaces::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &found->second;
}

const v1::Namespace* Namespaces::FindOf(std::string_view job_id) const {
  return Find(NamespaceOf(job_id));
}

bool Namespaces::Sees(const Identity& caller, std::string_view job_id) const {
  if (caller.role == Role::kOperator) return true;
  const v1::Namespace* const space = FindOf(job_id);
  if (space == nullptr) return false;
  const std::string_view role = RoleName(caller.role);
  return std::ranges::any_of(space->members(), [&](std::string_view member) {
    if (!member.starts_with(role) || member.size() <= role.size() || member[role.size()] != '/')
      return false;
    const std::string_view name = member.substr(role.size() + 1);
    return name == kEveryName || name == caller.name;
  });
}

Status CheckSees(const Namespaces& namespaces, const Identity& caller, std::string_view job_id) {
  if (namespaces.Sees(caller, job_id)) return OkStatus();
  return PermissionDenied("job {} is in the namespace {}, of which {} is no member", Shown(job_id),
                          Shown(NamespaceOf(job_id)), ToUri(caller));
}

Status CheckExists(const Namespaces& namespaces, std::string_view job_id) {
  if (namespaces.FindOf(job_id) != nullptr) return OkStatus();
  return RefuseField(StatusCode::kInvalidArgument, "name",
                     "is \"{}\", in the namespace \"{}\", which does not exist", Shown(job_id),
                     Shown(NamespaceOf(job_id)));
}

}  // namespace troupe

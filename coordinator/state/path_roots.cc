#include "coordinator/state/path_roots.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plan/job/key_schema.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;

constexpr size_t kShownPathBytes = 200;  // at most, of a path in a refusal

// Returns the path in its normal form, without a slash at its end.
std::string NormalPath(const std::string& path) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

// Names with this prefix are opened for a dataset, so the root itself is no dataset beneath it.
bool IsPrefix(std::string_view root_name) { return root_name == "data"; }

class PathChecker {
 public:
  PathChecker(const v1::Namespace& space, Violations* violations)
      : space_(space), violations_(violations) {}

  // `prefix`: the path of `message`, with a dot at its end.
  void CheckMessage(const ProtoMessage& message, const std::string& prefix) {
    const auto* const reflection = message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection->ListFields(message, &fields);
    for (const FieldDescriptor* const field : fields) {
      const std::string key = prefix + field->name();
      const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      if (is_message && field->is_repeated()) {
        for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
          CheckMessage(reflection->GetRepeatedMessage(message, field, i),
                       fmt::format("{}[{}].", key, i));
        }
      } else if (is_message) {
        CheckMessage(reflection->GetMessage(message, field), key + ".");
      } else if (KeyOptionsOf(*field).path()) {
        CheckPath(key, reflection->GetString(message, field), KeyOptionsOf(*field).root());
      }
    }
  }

  void CheckPath(const std::string& key, const std::string& path, const std::string& root_name) {
    if (path.empty()) return;
    const std::string_view shown = std::string_view(path).substr(0, kShownPathBytes);
    const FieldDescriptor* const field = v1::PathRoots::descriptor()->FindFieldByName(root_name);
    if (field == nullptr) {
      violations_->Add(key, "is {}, and the schema states no root for this key", shown);
      return;
    }
    const v1::PathRoots& roots = space_.roots();
    const std::string root = roots.GetReflection()->GetString(roots, field);
    if (root.empty()) return;
    const std::string beneath = fmt::format("beneath {}, the root roots.{} of the namespace {}",
                                            root, root_name, space_.name());
    if (path.front() != '/') {
      violations_->Add(key, "is {}, not an absolute path {}", shown, beneath);
    } else if ((path + "/").find("/../") != std::string::npos) {
      violations_->Add(key, "is {}, which contains .. and has to be {}", shown, beneath);
    } else if (path.find('\0') != std::string::npos) {
      violations_->Add(key, "has a zero byte, and has to be {}", beneath);
    } else if (!IsBeneath(NormalPath(path), NormalPath(root), IsPrefix(root_name))) {
      violations_->Add(key, "is {}, not {}", shown, beneath);
    }
  }

 private:
  static bool IsBeneath(const std::string& path, const std::string& root, bool strictly) {
    if (path == root) return !strictly;
    return path.starts_with(root == "/" ? root : root + "/");
  }

  const v1::Namespace& space_;
  Violations* const violations_;
};

}  // namespace

Status CheckPaths(const v1::JobSpec& spec, const v1::Namespace& space) {
  Violations violations;
  PathChecker(space, &violations).CheckMessage(spec, "");
  return violations.ToStatus();
}

Status CheckPaths(const v1::RebuildJobRequest& request, const v1::Namespace& space) {
  Violations violations;
  PathChecker checker(space, &violations);
  checker.CheckMessage(request.job(), "");
  for (int i = 0; i < request.checkpoints_size(); ++i) {
    checker.CheckPath(fmt::format("checkpoints[{}].path", i), request.checkpoints(i).path(),
                      "checkpoints");
  }
  return violations.ToStatus();
}

}  // namespace troupe

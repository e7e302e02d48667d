#include "coordinator/kubernetes/api_answers.h"

#include <fmt/format.h>

#include "coordinator/kubernetes/requests.h"

namespace troupe {
namespace {

// The API server refuses a status with fields that an older definition does not declare.
bool IsUndeclared(const ApiAnswer& answer) {
  return answer.code >= HttpCode::kServerErrors &&
         answer.body.find("not declared in schema") != answer.body.npos;
}

}  // namespace

bool ConcernsAll(const ApiAnswer& answer) {
  return answer.code == 0 || answer.code == HttpCode::kTooManyRequests ||
         answer.code == HttpCode::kUnauthorized ||
         (answer.code >= HttpCode::kServerErrors && !IsUndeclared(answer));
}

std::string ErrorWithAdvice(const ApiAnswer& answer) {
  std::string text = ErrorText(answer);
  if (IsUndeclared(answer) || answer.code == HttpCode::kNotFound) {
    text += fmt::format("; the definition is of another version: {}", kApplyDefinition);
  } else if (answer.code == HttpCode::kForbidden) {
    text +=
        "; the coordinator has lost its rights: apply "
        "deploy/kubernetes/components/jobs-crd/rights.yaml, or remove the finalizers of its "
        "TroupeJobs if Troupe is being uninstalled (docs/kubernetes.md, Uninstall)";
  } else if (answer.code == HttpCode::kTooLarge) {
    text += "; the object is too large for the API server";
  }
  return text;
}

bool IsOlder(const std::string& version, const std::string& known) {
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  };
  if (!is_number(version) || !is_number(known)) return false;
  return version.size() == known.size() ? version < known : version.size() < known.size();
}

}  // namespace troupe

// The meaning of answers of the API server for the requests that follow. Pure.
#ifndef TROUPE_COORDINATOR_KUBERNETES_API_ANSWERS_H_
#define TROUPE_COORDINATOR_KUBERNETES_API_ANSWERS_H_

#include <string>

#include "coordinator/kubernetes/api_server.h"

namespace troupe {

inline constexpr char kApplyDefinition[] =
    "apply deploy/kubernetes/components/jobs-crd/definition.yaml of this version";

// Whether no request would succeed now.
bool ConcernsAll(const ApiAnswer& answer);

// Returns the error of an answer to a write of an object, and what helps against it.
std::string ErrorWithAdvice(const ApiAnswer& answer);

// Whether the first version is the older one. The answer to a write is often ahead of the watch,
// whose events must not bring former wishes back.
bool IsOlder(const std::string& version, const std::string& known);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_API_ANSWERS_H_

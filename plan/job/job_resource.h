// The custom resource TroupeJob of Kubernetes, whose spec.job is the job file: its definition, made
// from the schema of the job keys (proto/troupe/v1/job.proto). Pure.
#ifndef TROUPE_PLAN_JOB_JOB_RESOURCE_H_
#define TROUPE_PLAN_JOB_JOB_RESOURCE_H_

#include <nlohmann/json.hpp>
#include <string>

namespace troupe {

// Returns the schema of spec.job, in the form of OpenAPI 3.0 that Kubernetes calls structural. Each
// key has its type, range, words and meaning; defaults are stated in the meaning only, so that the
// stored object has the keys that the user wrote.
nlohmann::ordered_json JobKeysSchema();

// Returns the CustomResourceDefinition as YAML. It is the file
// deploy/kubernetes/components/jobs-crd/definition.yaml, as `troupe keys --kubernetes` prints it.
std::string JobResourceDefinition();

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_JOB_RESOURCE_H_

#include "coordinator/kubernetes/kubernetes_options.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/file_system.h"
#include "base/text_file.h"

namespace troupe {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// The flag for which the options are.
const char* PurposeOf(const KubernetesOptions& options) {
  return options.jobs ? "--kubernetes-jobs" : "--kubernetes-pods";
}

StatusOr<std::string> UrlOfPod(const char* purpose) {
  const std::string host = Variable("KUBERNETES_SERVICE_HOST");
  const std::string port = Variable("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return InvalidArgument(
        "{} needs --kubernetes-api outside a pod: there is no KUBERNETES_SERVICE_HOST or "
        "KUBERNETES_SERVICE_PORT in the environment",
        purpose);
  }
  const bool is_ipv6 = host.find(':') != host.npos && !host.starts_with('[');
  return is_ipv6 ? fmt::format("https://[{}]:{}", host, port)
                 : fmt::format("https://{}:{}", host, port);
}

// A namespace is a part of the paths of requests.
bool IsNamespace(const std::string& name) {
  constexpr size_t kBytesMax = 63;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.size() <= kBytesMax && name.front() != '-' && name.back() != '-' &&
         std::all_of(name.begin(), name.end(), fits);
}

}  // namespace

StatusOr<KubernetesOptions> CompleteKubernetesOptions(KubernetesOptions options) {
  if (options.url.empty()) {
    TROUPE_ASSIGN_OR_RETURN(options.url, UrlOfPod(PurposeOf(options)));
  }
  if (options.url.ends_with('/')) options.url.pop_back();
  TROUPE_RETURN_IF_ERROR(
      Annotate(CheckApiClient({options.url, options.directory}), "--kubernetes-api"));
  if (!options.space.empty()) {
    if (IsNamespace(options.space)) return options;
    return InvalidArgument("--kubernetes-namespace is \"{}\", must be the name of a namespace",
                           options.space);
  }
  const std::string path = JoinPath(options.directory, "namespace");
  const StatusOr<std::string> text = ReadTextFile(path);
  if (text.ok()) options.space = text->substr(0, text->find_last_not_of(" \t\r\n") + 1);
  if (options.space.empty()) {
    return InvalidArgument("{} needs --kubernetes-namespace: {} has no name of one",
                           PurposeOf(options), path);
  }
  if (!IsNamespace(options.space))
    return InvalidArgument("{} has \"{}\", not the name of a namespace", path, options.space);
  return options;
}

}  // namespace troupe

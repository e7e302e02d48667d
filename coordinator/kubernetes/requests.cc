#include "coordinator/kubernetes/requests.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/text/printable.h"

namespace troupe {
namespace {

constexpr char kFieldManager[] = "troupe-coordinator";
constexpr char kController[] = "troupe.dev/coordinator";
constexpr int kWatchSeconds = 300;
// Limits of the API server.
constexpr size_t kMostNoteBytes = 1024;
constexpr size_t kMostNameBytes = 253;
constexpr size_t kMostInstanceBytes = 128;
constexpr size_t kNumberBytes = 17;  // "." and 16 digits, at the end of an event's name

// Annotations of pods. A ReplicaSet removes the pods with the lowest cost first; the others are
// read by autoscalers of nodes.
constexpr char kDeletionCost[] = "controller.kubernetes.io/pod-deletion-cost";
constexpr char kBusyCost[] = "1000";
constexpr char kIdleCost[] = "0";
constexpr char kDoNotDisrupt[] = "karpenter.sh/do-not-disrupt";
constexpr char kSafeToEvict[] = "cluster-autoscaler.kubernetes.io/safe-to-evict";

constexpr size_t kMostErrorBytes = 500;

std::string Collection(const std::string& space) {
  return fmt::format("/apis/{}/namespaces/{}/troupejobs", kTroupeJobVersion, space);
}

std::string PathOf(const TroupeJob& object) {
  return fmt::format("{}/{}", Collection(object.space), object.name);
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ApiRequest JsonPatch(const TroupeJob& object, const Json& operations) {
  return {.method = "PATCH",
          .path = fmt::format("{}?fieldManager={}", PathOf(object), kFieldManager),
          .content_type = "application/json-patch+json",
          .body = Dump(operations)};
}

std::tm Calendar(int64_t wall_ns) {
  return fmt::gmtime(static_cast<std::time_t>(wall_ns / 1'000'000'000));
}

}  // namespace

ApiRequest ListRequest(const std::string& space) { return {.path = Collection(space)}; }

ApiRequest GetRequest(const TroupeJob& object) { return {.path = PathOf(object)}; }

std::string WatchPath(const std::string& space, const std::string& resource_version) {
  return fmt::format("{}?watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
                     Collection(space), resource_version, kWatchSeconds);
}

ApiRequest StatusRequest(const TroupeJob& object, const TroupeJobStatus& status) {
  const Json body = {
      {"apiVersion", kTroupeJobVersion},
      {"kind", kTroupeJobKind},
      {"metadata", {{"name", object.name}, {"namespace", object.space}, {"uid", object.uid}}},
      {"status", StatusToJson(status)}};
  return {
      .method = "PATCH",
      .path = fmt::format("{}/status?fieldManager={}&force=true", PathOf(object), kFieldManager),
      .content_type = "application/apply-patch+yaml",
      .body = Dump(body)};
}

ApiRequest AddFinalizerRequest(const TroupeJob& object) {
  std::vector<std::string> finalizers = object.finalizers;
  finalizers.emplace_back(kFinalizer);
  return JsonPatch(
      object,
      Json::array({{{"op", "test"},
                    {"path", "/metadata/resourceVersion"},
                    {"value", object.resource_version}},
                   {{"op", "add"}, {"path", "/metadata/finalizers"}, {"value", finalizers}}}));
}

ApiRequest RemoveFinalizerRequest(const TroupeJob& object) {
  const auto found = std::ranges::find(object.finalizers, kFinalizer);
  const std::string path =
      fmt::format("/metadata/finalizers/{}", found - object.finalizers.begin());
  return JsonPatch(object, Json::array({{{"op", "test"}, {"path", path}, {"value", kFinalizer}},
                                        {{"op", "remove"}, {"path", path}}}));
}

ApiRequest EventRequest(const TroupeJob& object, const ObjectEvent& event,
                        const std::string& instance, int64_t wall_ns) {
  const std::string name =
      fmt::format("{}.{:016x}", Shorten(object.name, kMostNameBytes - kNumberBytes), wall_ns);
  const std::string time =
      fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06d}Z", Calendar(wall_ns), wall_ns / 1'000 % 1'000'000);
  const Json body = {{"apiVersion", "events.k8s.io/v1"},
                     {"kind", "Event"},
                     {"metadata", {{"name", name}, {"namespace", object.space}}},
                     {"eventTime", time},
                     {"type", event.is_warning ? "Warning" : "Normal"},
                     {"reason", event.reason},
                     {"action", "Reconcile"},
                     {"note", Shorten(PrintableLine(event.note), kMostNoteBytes)},
                     {"reportingController", kController},
                     {"reportingInstance", Shorten(instance, kMostInstanceBytes)},
                     {"regarding",
                      {{"apiVersion", kTroupeJobVersion},
                       {"kind", kTroupeJobKind},
                       {"namespace", object.space},
                       {"name", object.name},
                       {"uid", object.uid}}}};
  return {.method = "POST",
          .path = fmt::format("/apis/events.k8s.io/v1/namespaces/{}/events", object.space),
          .content_type = "application/json",
          .body = Dump(body)};
}

ApiRequest MarkPodRequest(const std::string& space, const std::string& pod, bool is_busy) {
  // A merge patch removes a member that is null.
  Json annotations = {{kDeletionCost, is_busy ? kBusyCost : kIdleCost},
                      {kDoNotDisrupt, nullptr},
                      {kSafeToEvict, nullptr}};
  if (is_busy) {
    annotations[kDoNotDisrupt] = "true";
    annotations[kSafeToEvict] = "false";
  }
  const Json body = {{"metadata", {{"annotations", std::move(annotations)}}}};
  return {.method = "PATCH",
          .path = fmt::format("/api/v1/namespaces/{}/pods/{}?fieldManager={}", space, pod,
                              kFieldManager),
          .content_type = "application/merge-patch+json",
          .body = Dump(body)};
}

std::string ErrorText(const ApiAnswer& answer) {
  if (answer.code == 0) return answer.error;
  const std::string message = TextOf(Json::parse(answer.body, nullptr, false), "message");
  return fmt::format("HTTP {}: {}", answer.code,
                     Shorten(message.empty() ? answer.body : message, kMostErrorBytes));
}

}  // namespace troupe

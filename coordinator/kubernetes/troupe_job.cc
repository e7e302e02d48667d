#include "coordinator/kubernetes/troupe_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "plan/job/job_file.h"

namespace troupe {
namespace {

// Levels of spec.job; a job has fewer than ten. The JSON library writes each level by a call.
constexpr int kMostLevels = 32;

constexpr size_t kMostShownBytes = 100;

bool IsDeeper(const Json& json, int levels) {
  if (!json.is_structured()) return false;
  return levels == 0 || std::ranges::any_of(json, [levels](const Json& member) {
           return IsDeeper(member, levels - 1);
         });
}

// Returns the member, or null if `object` is no object or has no such member.
const Json& Member(const Json& object, const char* name) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

// Where kubectl keeps what `kubectl apply` was given.
constexpr char kLastApplied[] = "kubectl.kubernetes.io/last-applied-configuration";
constexpr size_t kMostDropped = 5;

// Adds the keys of `given` that `stored` lacks. Null is the same as absent.
void AddDropped(const Json& given, const Json& stored, const std::string& path,
                std::vector<std::string>* dropped) {
  if (given.is_array() && stored.is_array()) {
    for (size_t i = 0; i < std::min(given.size(), stored.size()); ++i)
      AddDropped(given[i], stored[i], fmt::format("{}[{}]", path, i), dropped);
  }
  if (!given.is_object() || !stored.is_object()) return;
  for (const auto& [key, value] : given.items()) {
    if (value.is_null() || dropped->size() >= kMostDropped) continue;
    const std::string place = fmt::format("{}.{}", path, Shorten(key, kMostShownBytes));
    const auto found = stored.find(key);
    if (found == stored.end()) {
      dropped->push_back(place);
    } else {
      AddDropped(value, *found, place, dropped);
    }
  }
}

// A client that asks for no validation gets no error for a misspelt key, which is lost.
// REQUIRES: `spec`.job has few levels.
std::vector<std::string> DroppedKeys(const Json& metadata, const Json& spec) {
  const Json applied =
      Json::parse(TextOf(Member(metadata, "annotations"), kLastApplied), nullptr, false);
  Json given = Member(applied, "spec");
  std::vector<std::string> dropped;
  AddDropped(Member(given, "job"), Member(spec, "job"), "spec.job", &dropped);
  if (!given.is_object()) return dropped;
  // These may have been removed since.
  for (const char* const key : {"job", "suspend", "cancelPolicy"}) given.erase(key);
  AddDropped(given, spec.is_object() ? spec : Json::object(), "spec", &dropped);
  return dropped;
}

TroupeJobStatus ParseStatus(const Json& status) {
  TroupeJobStatus parsed{.observed_generation = WholeOf(status, "observedGeneration").value_or(0),
                         .state = TextOf(status, "state"),
                         .job_name = TextOf(status, "jobName"),
                         .step = WholeOf(status, "step"),
                         .steps = WholeOf(status, "steps"),
                         .loss = TextOf(status, "loss"),
                         .mfu = TextOf(status, "mfu"),
                         .restarts = WholeOf(status, "restarts"),
                         .remaining_seconds = WholeOf(status, "remainingSeconds"),
                         .last_checkpoint = TextOf(status, "lastCheckpoint")};
  const Json& conditions = Member(status, "conditions");
  if (!conditions.is_array()) return parsed;
  for (const Json& condition : conditions) {
    parsed.conditions.push_back({.type = TextOf(condition, "type"),
                                 .status = TextOf(condition, "status"),
                                 .reason = TextOf(condition, "reason"),
                                 .message = TextOf(condition, "message"),
                                 .since = TextOf(condition, "lastTransitionTime")});
  }
  return parsed;
}

void AddText(const char* name, const std::string& text, Json* json) {
  if (!text.empty()) (*json)[name] = text;
}

void AddWhole(const char* name, const std::optional<int64_t>& number, Json* json) {
  if (number) (*json)[name] = *number;
}

}  // namespace

std::string TextOf(const Json& object, const char* name) {
  const Json& member = Member(object, name);
  return member.is_string() ? member.get<std::string>() : std::string();
}

std::optional<int64_t> WholeOf(const Json& object, const char* name) {
  const Json& member = Member(object, name);
  return member.is_number_integer() ? std::optional<int64_t>(member.get<int64_t>()) : std::nullopt;
}

bool IsPartOfPath(std::string_view text) {
  return !text.empty() && text.front() != '.' && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '.' || c == '_';
  });
}

const Condition* TroupeJobStatus::Find(std::string_view type) const {
  const auto found =
      std::ranges::find_if(conditions, [&](const Condition& one) { return one.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

bool TroupeJobStatus::Holds(std::string_view type) const {
  const Condition* const found = Find(type);
  return found != nullptr && found->status == "True";
}

bool TroupeJob::has_finalizer() const {
  return std::ranges::find(finalizers, kFinalizer) != finalizers.end();
}

StatusOr<TroupeJob> ParseTroupeJob(const Json& object) {
  const Json& metadata = Member(object, "metadata");
  const Json& spec = Member(object, "spec");
  TroupeJob parsed{.name = TextOf(metadata, "name"),
                   .space = TextOf(metadata, "namespace"),
                   .uid = TextOf(metadata, "uid"),
                   .resource_version = TextOf(metadata, "resourceVersion"),
                   .generation = WholeOf(metadata, "generation").value_or(0),
                   .is_deleted = !TextOf(metadata, "deletionTimestamp").empty(),
                   .suspend = Member(spec, "suspend") == Json(true),
                   .aborts = TextOf(spec, "cancelPolicy") == "Abort",
                   .status = ParseStatus(Member(object, "status"))};
  for (const char* field : {"name", "namespace", "uid", "resourceVersion"}) {
    const std::string text = TextOf(metadata, field);
    if (!IsPartOfPath(text)) {
      return InvalidArgument(
          "metadata.{} of an object is \"{}\", must be of letters, digits, '-', '_' and '.', which "
          "does not come first",
          field, Shorten(text, kMostShownBytes));
    }
  }
  const Json& finalizers = Member(metadata, "finalizers");
  if (finalizers.is_array()) {
    for (const Json& finalizer : finalizers)
      parsed.finalizers.push_back(finalizer.is_string() ? finalizer.get<std::string>() : "");
  }
  const Json& job = Member(spec, "job");
  if (IsDeeper(job, kMostLevels)) {
    return InvalidArgument("spec.job of {} has more than {} levels of lists and objects",
                           parsed.name, kMostLevels);
  }
  parsed.dropped = DroppedKeys(metadata, spec);
  parsed.job = job.is_object() ? job.dump(-1, ' ', false, Json::error_handler_t::replace) : "{}";
  return parsed;
}

StatusOr<v1::JobSpec> JobOf(const TroupeJob& object) {
  if (object.job.size() > kMaxJobFileBytes) {
    return InvalidArgument("spec.job has {} bytes, must have at most {}", object.job.size(),
                           kMaxJobFileBytes);
  }
  TROUPE_ASSIGN_OR_RETURN(v1::JobSpec spec, ParseJobFile(object.job, "spec.job"));
  if (spec.name().empty()) spec.set_name(object.name);
  return spec;
}

Json StatusToJson(const TroupeJobStatus& status) {
  Json json = {{"observedGeneration", status.observed_generation}, {"state", status.state}};
  AddText("jobName", status.job_name, &json);
  AddWhole("step", status.step, &json);
  AddWhole("steps", status.steps, &json);
  AddText("loss", status.loss, &json);
  AddText("mfu", status.mfu, &json);
  AddWhole("restarts", status.restarts, &json);
  AddWhole("remainingSeconds", status.remaining_seconds, &json);
  AddText("lastCheckpoint", status.last_checkpoint, &json);
  Json conditions = Json::array();
  for (const Condition& condition : status.conditions) {
    conditions.push_back({{"type", condition.type},
                          {"status", condition.status},
                          {"reason", condition.reason},
                          {"message", condition.message},
                          {"observedGeneration", status.observed_generation},
                          {"lastTransitionTime", condition.since}});
  }
  json["conditions"] = std::move(conditions);
  return json;
}

std::string DroppedText(const TroupeJob& object) {
  if (object.dropped.empty()) return "";
  return fmt::format("the API server has dropped {}{}, which its definition does not have",
                     fmt::join(object.dropped, ", "),
                     object.dropped.size() < kMostDropped ? "" : " and perhaps more");
}

std::string Shorten(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  // The bytes of a character after its first one are 10xxxxxx.
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return std::string(text.substr(0, bytes));
}

}  // namespace troupe

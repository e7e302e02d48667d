#include "worker/daemon/spot_notice.h"

#include <time.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace troupe {
namespace {

using Json = nlohmann::json;

constexpr Duration kAwsNotice = std::chrono::seconds(120);
constexpr Duration kShortNotice = std::chrono::seconds(30);
constexpr Duration kLongestNotice = std::chrono::minutes(10);

struct SpotProviderRow {
  SpotProvider provider;
  std::string_view word;
  std::string_view url;
};

constexpr SpotProviderRow kSpotProviders[] = {
    {SpotProvider::kAws, "aws", "http://169.254.169.254"},
    {SpotProvider::kGcp, "gcp", "http://metadata.google.internal"},
    {SpotProvider::kAzure, "azure", "http://169.254.169.254"},
};

const SpotProviderRow& RowOf(SpotProvider provider) {
  return kSpotProviders[static_cast<size_t>(provider)];
}

Status UnexpectedAnswer(SpotProvider provider, const MetadataAnswer& answer) {
  return Unavailable("the metadata service of {} answered with code {} and {} bytes",
                     RowOf(provider).word, answer.code, answer.body.size());
}

// Returns the time until `text`, which has the form `format` of strptime, in UTC; `otherwise` for
// other texts.
Duration TimeUntil(const std::string& text, const char* format, int64_t unix_seconds,
                   Duration otherwise) {
  struct tm parts = {};
  const char* const end = strptime(text.c_str(), format, &parts);
  if (end == nullptr || *end != '\0') return otherwise;
  const int64_t left = static_cast<int64_t>(timegm(&parts)) - unix_seconds;
  const auto longest = std::chrono::duration_cast<std::chrono::seconds>(kLongestNotice).count();
  return std::chrono::seconds(std::clamp<int64_t>(left, 0, longest));
}

// Returns a member that is a text; empty if there is none.
std::string TextOf(const Json& object, const char* name) {
  if (!object.is_object()) return {};
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

SpotNotice NoticeOf(SpotProvider provider, std::string_view what, Duration left) {
  return {fmt::format("a spot notice of {}: {}", RowOf(provider).word, what), left};
}

}  // namespace

StatusOr<SpotProvider> ParseSpotProvider(std::string_view word) {
  for (const SpotProviderRow& row : kSpotProviders) {
    if (row.word == word) return row.provider;
  }
  return InvalidArgument("is \"{}\", must be aws, gcp or azure", word);
}

std::string MetadataUrlOf(SpotProvider provider) { return std::string(RowOf(provider).url); }

MetadataRequest SpotConversation::Next() const {
  switch (provider_) {
    case SpotProvider::kAws:
      if (token_.empty()) {
        return {.path = "/latest/api/token",
                .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"},
                .is_put = true};
      }
      return {.path = "/latest/meta-data/spot/instance-action",
              .headers = {"X-aws-ec2-metadata-token: " + token_}};
    case SpotProvider::kGcp:
      return {.path = "/computeMetadata/v1/instance/preempted",
              .headers = {"Metadata-Flavor: Google"}};
    case SpotProvider::kAzure:
      if (machine_name_.empty()) {
        return {.path = "/metadata/instance/compute/name?api-version=2021-02-01&format=text",
                .headers = {"Metadata: true"}};
      }
      return {.path = "/metadata/scheduledevents?api-version=2020-07-01",
              .headers = {"Metadata: true"}};
  }
  return {};
}

StatusOr<std::optional<SpotNotice>> SpotConversation::Handle(const MetadataAnswer& answer,
                                                             int64_t unix_seconds) {
  switch (provider_) {
    case SpotProvider::kAws:
      return HandleAws(answer, unix_seconds);
    case SpotProvider::kGcp:
      return HandleGcp(answer);
    case SpotProvider::kAzure:
      return HandleAzure(answer, unix_seconds);
  }
  return std::optional<SpotNotice>();
}

StatusOr<std::optional<SpotNotice>> SpotConversation::HandleAws(const MetadataAnswer& answer,
                                                                int64_t unix_seconds) {
  constexpr size_t kTokenBytesMax = 1024;
  if (token_.empty()) {
    const bool is_token =
        answer.code == 200 && answer.body.size() <= kTokenBytesMax &&
        std::all_of(answer.body.begin(), answer.body.end(), [](char c) { return c > ' '; });
    if (!is_token || answer.body.empty()) return UnexpectedAnswer(provider_, answer);
    token_ = answer.body;
    is_token_used_ = false;
    return std::optional<SpotNotice>();
  }
  if (answer.code == 401) {
    token_.clear();
    if (!is_token_used_) return UnexpectedAnswer(provider_, answer);
    return std::optional<SpotNotice>();  // the token has expired
  }
  is_token_used_ = true;
  if (answer.code == 404) return std::optional<SpotNotice>();
  const Json action = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  const std::string what = TextOf(action, "action");
  if (answer.code != 200 || what.empty()) return UnexpectedAnswer(provider_, answer);
  return NoticeOf(
      provider_, what,
      TimeUntil(TextOf(action, "time"), "%Y-%m-%dT%H:%M:%SZ", unix_seconds, kAwsNotice));
}

StatusOr<std::optional<SpotNotice>> SpotConversation::HandleGcp(
    const MetadataAnswer& answer) const {
  if (answer.code == 200 && answer.body.starts_with("FALSE")) return std::optional<SpotNotice>();
  if (answer.code == 200 && answer.body.starts_with("TRUE"))
    return NoticeOf(provider_, "preempted", kShortNotice);
  return UnexpectedAnswer(provider_, answer);
}

StatusOr<std::optional<SpotNotice>> SpotConversation::HandleAzure(const MetadataAnswer& answer,
                                                                  int64_t unix_seconds) {
  if (answer.code != 200) return UnexpectedAnswer(provider_, answer);
  if (machine_name_.empty()) {
    if (answer.body.empty()) return UnexpectedAnswer(provider_, answer);
    machine_name_ = answer.body;
    return std::optional<SpotNotice>();
  }
  const Json document = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  const auto events = document.is_object() ? document.find("Events") : document.end();
  if (!document.is_object() || events == document.end() || !events->is_array())
    return UnexpectedAnswer(provider_, answer);
  for (const Json& event : *events) {
    const std::string type = TextOf(event, "EventType");
    if (type != "Preempt" && type != "Terminate") continue;
    // The machines of a group see each other's events.
    const auto resources = event.find("Resources");
    if (resources == event.end() || !resources->is_array()) continue;
    if (std::find(resources->begin(), resources->end(), Json(machine_name_)) == resources->end())
      continue;
    return NoticeOf(provider_, type,
                    TimeUntil(TextOf(event, "NotBefore"), "%a, %d %b %Y %H:%M:%S GMT", unix_seconds,
                              kShortNotice));
  }
  return std::optional<SpotNotice>();
}

bool SpotComplaints::IsNews(const std::string& reason, MonotonicTime now) {
  if (reason == last_ || (logged_ && now - *logged_ < kInterval)) return false;
  last_ = reason;
  logged_ = now;
  return true;
}

}  // namespace troupe

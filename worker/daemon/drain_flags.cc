#include "worker/daemon/drain_flags.h"

#include <algorithm>
#include <string_view>

namespace troupe {
namespace {

constexpr int kDrainMaxSeconds = 24 * 3600;

}  // namespace

void AddDrainFlags(FlagParser& parser, DrainFlags* flags) {
  parser.AddNumber({"--drain-seconds", "SECONDS",
                    "time after SIGTERM in which jobs commit a checkpoint and move to other "
                    "workers; the worker ends when it has no ranks left, 2 s before this time is "
                    "over, or at a second SIGTERM; 0, and SIGINT: it ends at once"},
                   {0, kDrainMaxSeconds}, &flags->seconds);
  parser.AddParsed(
      {"--spot-notice", "CLOUD",
       "aws, gcp or azure: heeds the notice by which it takes this machine back: jobs move to "
       "other workers, as after SIGTERM"},
      [flags](const std::string& value) -> Status {
        const StatusOr<SpotProvider> cloud = ParseSpotProvider(value);
        if (!cloud.ok()) return InvalidArgument("--spot-notice {}", Message(cloud.status()));
        flags->spot = *cloud;
        return OkStatus();
      });
  parser.AddText({"--metadata-url", "URL",
                  "address of the metadata service that --spot-notice asks (default: the cloud's)"},
                 &flags->metadata_url);
}

Status CheckDrainFlags(const DrainFlags& flags) {
  if (flags.metadata_url.empty()) return OkStatus();
  if (!flags.spot) return InvalidArgument("--metadata-url has no effect without --spot-notice");
  std::string_view host = flags.metadata_url;
  // The URL is part of warnings, so a user with a password does not belong there.
  if (host.find('@') != host.npos)
    return InvalidArgument("--metadata-url has an @, must be a URL without a user");
  if (host.starts_with("https://")) {
    host.remove_prefix(std::string_view("https://").size());
  } else if (host.starts_with("http://")) {
    host.remove_prefix(std::string_view("http://").size());
  } else {
    return InvalidArgument("--metadata-url is \"{}\", must begin with http:// or https://",
                           flags.metadata_url);
  }
  const bool is_text = std::all_of(host.begin(), host.end(), [](char c) { return c > ' '; });
  host = host.substr(0, host.find_first_of("/?#"));
  // Inside the brackets of an IPv6 address, a colon begins no port.
  const bool is_bracketed = host.starts_with('[');
  const size_t host_end = std::min(host.size(), host.find(is_bracketed ? "]" : ":"));
  if (!is_text || host_end == 0 || (is_bracketed && host_end == host.size()))
    return InvalidArgument("--metadata-url is \"{}\", must be a URL such as http://HOST:PORT",
                           flags.metadata_url);
  std::string_view port = host.substr(host_end + (is_bracketed ? 1 : 0));
  if (!port.empty() &&
      !(port.starts_with(':') && ParseNumber<int>("", port.substr(1), {1, 65535}).ok()))
    return InvalidArgument("--metadata-url is \"{}\", its port must be a number from 1 to 65535",
                           flags.metadata_url);
  return OkStatus();
}

}  // namespace troupe

#include "collective/ucx/endpoint_lanes.h"

#include <algorithm>
#include <string>

namespace troupe {
namespace {

LinkKind KindOf(std::string_view transport) {
  for (const std::string_view name : {"posix", "sysv", "xpmem", "cma", "knem"}) {
    if (transport == name) return LinkKind::kSharedMemory;
  }
  if (transport == "tcp") return LinkKind::kTcp;
  if (transport == "self") return LinkKind::kProcessMemory;
  for (const std::string_view prefix : {"rc_", "dc_", "ud_"}) {
    if (transport.starts_with(prefix)) return LinkKind::kRdma;
  }
  return LinkKind::kOther;
}

// Parses "  3:sysv/memory.0 md[2] …", the text after "lane[0]:".
Link ParseLane(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
  text = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), text.find(':') + 1));
  const size_t slash = text.find('/');
  const std::string_view transport = text.substr(0, slash);
  std::string_view device = slash == std::string_view::npos ? "" : text.substr(slash + 1);
  device = device.substr(0, device.rfind('.'));  // without the path number
  const LinkKind kind = KindOf(transport);
  const bool named_by_device = kind == LinkKind::kTcp || kind == LinkKind::kRdma;
  return {kind, std::string(named_by_device ? device : transport)};
}

bool HasWord(std::string_view line, std::string_view word) {
  for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    const size_t end = at + word.size();
    if (at > 0 && line[at - 1] == ' ' && (end == line.size() || line[end] == ' ')) return true;
  }
  return false;
}

}  // namespace

Link LinkOfLanes(std::string_view description) {
  while (!description.empty()) {
    const size_t end = description.find('\n');
    const std::string_view line = description.substr(0, end);
    description = end == std::string_view::npos ? "" : description.substr(end + 1);
    const size_t lane = line.find("lane[");
    const size_t colon = lane == std::string_view::npos ? lane : line.find("]:", lane);
    if (colon != std::string_view::npos && HasWord(line, "am"))
      return ParseLane(line.substr(colon + 2));
  }
  return {};
}

}  // namespace troupe

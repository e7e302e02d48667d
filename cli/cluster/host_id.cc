#include "cli/cluster/host_id.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/text_file.h"

namespace troupe {
namespace {

constexpr size_t kMostNameBytes = 256;

bool IsPlain(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '.' || letter == '-' || letter == '_';
}

}  // namespace

HostId ThisHost() {
  std::array<char, kMostNameBytes> name{};
  HostId host;
  if (gethostname(name.data(), name.size() - 1) == 0) host.name = PlainHostName(name.data());
  const StatusOr<std::string> boot_id = ReadTextFile("/proc/sys/kernel/random/boot_id");
  if (boot_id.ok()) host.boot_id = boot_id->substr(0, boot_id->find('\n'));
  return host;
}

std::string PlainHostName(std::string_view name) {
  std::string plain(name);
  std::ranges::replace_if(
      plain, [](char letter) { return !IsPlain(letter); }, '_');
  return plain;
}

bool IsElsewhere(const HostId& host, const HostId& self) {
  if (host.name.empty() || host.name == self.name) return false;
  return host.boot_id.empty() || host.boot_id != self.boot_id;
}

}  // namespace troupe

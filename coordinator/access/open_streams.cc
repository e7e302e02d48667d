#include "coordinator/access/open_streams.h"

#include <utility>

namespace troupe {

uint64_t OpenStreams::Add(OpenStream stream) {
  expiries_.insert(stream.caller.expires);
  streams_.emplace(++last_, std::move(stream));
  return last_;
}

void OpenStreams::Remove(uint64_t number) {
  const auto found = streams_.find(number);
  if (found != streams_.end()) Erase(found);
}

std::vector<RefusedStream> OpenStreams::RemoveRefused(const Check& check) {
  std::vector<RefusedStream> refused;
  for (auto stream = streams_.begin(); stream != streams_.end();) {
    const auto next = std::next(stream);
    if (Status status = check(stream->second.caller); !status.ok()) {
      refused.push_back({stream->second, std::move(status)});
      Erase(stream);
    }
    stream = next;
  }
  return refused;
}

void OpenStreams::Erase(std::map<uint64_t, OpenStream>::iterator stream) {
  expiries_.erase(expiries_.find(stream->second.caller.expires));
  streams_.erase(stream);
}

}  // namespace troupe

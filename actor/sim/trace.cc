#include "actor/sim/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

// The finalizer of splitmix64: every bit of the sum affects every bit of the result.
uint64_t Mix(uint64_t hash, uint64_t value) {
  uint64_t z = hash + value + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace

uint64_t HashBytes(std::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325;
  // Eight bytes at a time, since the payloads of the whole cluster are hashed here.
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = Mix(hash, word);
    bytes.remove_prefix(8);
  }
  for (const unsigned char c : bytes) hash = (hash ^ c) * 0x100000001B3;
  return hash;
}

void Trace::Record(MonotonicTime time, std::string_view kind, uint64_t where, std::string_view what,
                   uint64_t detail) {
  hash_ = Mix(hash_, static_cast<uint64_t>(time.time_since_epoch().count()));
  hash_ = Mix(hash_, HashBytes(kind) ^ where);
  hash_ = Mix(hash_, HashBytes(what) ^ detail);
  if (!kept_.empty()) kept_[events_ % kept_.size()] = {time, kind, where, what, detail};
  ++events_;
}

void Trace::Fold(uint64_t value) { hash_ = Mix(hash_, value); }

std::string Trace::Text() const {
  std::string text;
  for (uint64_t e = events_ - std::min<uint64_t>(events_, kept_.size()); e < events_; ++e) {
    const Entry& entry = kept_[e % kept_.size()];
    text += fmt::format("{:>8} {:>12.6f} {:<8} {:<6} {} {:x}\n", e,
                        ToSeconds(entry.time.time_since_epoch()), entry.kind, entry.where,
                        entry.what, entry.detail);
  }
  return text;
}

}  // namespace troupe

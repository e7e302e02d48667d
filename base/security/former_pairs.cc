#include "base/security/former_pairs.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/security/certificate.h"

namespace troupe {
namespace {

struct Pair {
  TlsContents contents;
  int64_t not_before = 0;  // Unix time in seconds
  int64_t not_after = 0;   // Unix time in seconds
};

// Returns the pair if it is one of `identity` that its authorities vouch for while it is valid. A
// crash in a replacement leaves a key that does not belong to the certificate.
std::optional<Pair> UsableAtSomeTime(const TlsFiles& files, const Identity& identity,
                                     TlsContents contents, int64_t now_seconds) {
  const StatusOr<CertificateFacts> facts = ReadCertificate(contents.certificate);
  if (!facts.ok()) return std::nullopt;
  // OpenSSL takes a certificate for expired from its last second on.
  const int64_t time = std::max(facts->not_before, std::min(now_seconds, facts->not_after - 1));
  const StatusOr<Identity> holder = CheckTlsContents(files, contents, time);
  if (!holder.ok() || *holder != identity) return std::nullopt;
  return Pair{std::move(contents), facts->not_before, facts->not_after};
}

// Returns the pairs but those at all of whose times others are valid, in the order in which they
// begin. Of several with the same times the first one stays.
std::vector<Pair> WithoutCovered(std::vector<Pair> pairs) {
  std::ranges::stable_sort(
      pairs, {}, [](const Pair& pair) { return std::pair(pair.not_before, -pair.not_after); });
  std::vector<Pair> kept;
  for (Pair& pair : pairs) {
    if (!kept.empty() && pair.not_after <= kept.back().not_after) continue;
    if (kept.size() >= 2 && pair.not_before <= kept[kept.size() - 2].not_after) kept.pop_back();
    kept.push_back(std::move(pair));
  }
  return kept;
}

}  // namespace

std::string NextFormerText(const TlsFiles& files, const Identity& identity,
                           const std::string& authorities, int64_t now_seconds) {
  std::vector<TlsContents> replaced = ReadFormerPairs(files, authorities);
  if (StatusOr<TlsContents> current = ReadTlsContents(files); current.ok()) {
    current->authority = authorities;
    replaced.insert(replaced.begin(), *std::move(current));
  }
  std::vector<Pair> pairs;
  for (TlsContents& contents : replaced) {
    auto pair = UsableAtSomeTime(files, identity, std::move(contents), now_seconds);
    if (pair) pairs.push_back(*std::move(pair));
  }
  pairs = WithoutCovered(std::move(pairs));
  std::ranges::reverse(pairs);
  if (pairs.size() > kMostFormerPairs) pairs.resize(kMostFormerPairs);
  std::string text;
  for (const Pair& pair : pairs)
    text += pair.contents.certificate + "\n" + pair.contents.key + "\n";
  return text;
}

}  // namespace troupe

#include "data/data_identity.h"

#include <xxhash.h>

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/text/count_text.h"
#include "data/dataset_description.h"

namespace troupe {
namespace {

constexpr int64_t kWholeIndexBytesMax = int64_t{64} << 20;
constexpr int64_t kBlockBytes = 4096;
constexpr int64_t kBlocksOfJob = 1024;
constexpr int64_t kBlocksMin = 16;
constexpr int64_t kBlocksMax = 256;

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

std::string NameOfDescription() { return DescriptionPath(""); }

bool StatesDescription(const v1::DatasetIdentity& identity) {
  return !identity.files().empty() && identity.files().rbegin()->name() == NameOfDescription();
}

v1::DatasetIdentity IdentityOfSet(const Dataset::Opened& opened, int64_t blocks) {
  v1::DatasetIdentity identity;
  identity.set_key(opened.key);
  identity.set_path(opened.path);
  if (const auto documents = opened.data.documents()) identity.set_documents(*documents);
  identity.set_tokens(opened.data.tokens().tokens());
  for (const TokenDataset::File& file : opened.data.files()) {
    v1::DataFileIdentity& own = *identity.add_files();
    own.set_name(file.name);
    own.set_bytes(std::ssize(file.bytes));
    own.set_digest(SampledDigest(file.bytes, file.is_index ? kWholeIndexBytesMax : 0, blocks));
  }
  v1::DataFileIdentity& description = *identity.add_files();
  description.set_name(NameOfDescription());
  if (!opened.description) return identity;
  const std::span<const std::byte> text = AsBytes(*opened.description);
  description.set_bytes(std::ssize(text));
  description.set_digest(SampledDigest(text, std::ssize(text), blocks));
  return identity;
}

// For example "3 documents, 90 tokens, .idx of 94 bytes (xxh128:…), .bin of 180 bytes (…), no
// .troupe.json".
std::string Text(const v1::DatasetIdentity& identity) {
  std::string text;
  if (identity.has_documents()) text += CountText(identity.documents(), "document") + ", ";
  text += CountText(identity.tokens(), "token");
  for (const v1::DataFileIdentity& file : identity.files()) {
    const std::string name = file.name().empty() ? "a file" : file.name();
    text += file.digest().empty()
                ? fmt::format(", no {}", name)
                : fmt::format(", {} of {} bytes ({})", name, file.bytes(), file.digest());
  }
  return text;
}

bool AreSame(v1::DatasetIdentity a, v1::DatasetIdentity b) {
  // The spec states the paths; here they are for messages only.
  a.clear_path();
  b.clear_path();
  if (StatesDescription(a) != StatesDescription(b))
    (StatesDescription(a) ? a : b).mutable_files()->RemoveLast();
  return a.SerializeAsString() == b.SerializeAsString();
}

}  // namespace

std::string SampledDigest(std::span<const std::byte> bytes, int64_t whole_bytes_max,
                          int64_t blocks) {
  TROUPE_CHECK(blocks >= 2, "{} blocks", blocks);
  const std::unique_ptr<XXH3_state_t, FreeState> state(XXH3_createState());
  TROUPE_CHECK(state != nullptr && XXH3_128bits_reset(state.get()) == XXH_OK);
  const auto add = [&](std::span<const std::byte> part) {
    TROUPE_CHECK(XXH3_128bits_update(state.get(), part.data(), part.size()) == XXH_OK);
  };
  const int64_t size = std::ssize(bytes);
  const bool is_whole = size <= std::max(whole_bytes_max, blocks * kBlockBytes);
  if (is_whole) add(bytes);
  for (int64_t block = 0; !is_whole && block < blocks; ++block) {
    const int64_t last = size - kBlockBytes;
    // Blocks within one page read one page; the product stays below 2^63 for any file.
    const int64_t begin =
        block == blocks - 1 ? last : last / kBlockBytes * block / (blocks - 1) * kBlockBytes;
    add(bytes.subspan(static_cast<size_t>(begin), kBlockBytes));
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("xxh128{}:{:016x}{:016x}", is_whole ? "" : fmt::format("/{}", blocks),
                     hash.high64, hash.low64);
}

v1::DataIdentity IdentityOf(const Dataset& dataset) {
  const int64_t sets = std::ssize(dataset.opened());
  const int64_t blocks = std::clamp(kBlocksOfJob / sets, kBlocksMin, kBlocksMax);
  v1::DataIdentity identity;
  for (const Dataset::Opened& opened : dataset.opened())
    *identity.add_datasets() = IdentityOfSet(opened, blocks);
  return identity;
}

Status CheckSameData(const DataSide& wanted, const DataSide& found) {
  if (wanted.identity.datasets_size() != found.identity.datasets_size()) {
    return FailedPrecondition("{} {} data sets, {} {}", wanted.who, wanted.identity.datasets_size(),
                              found.who, found.identity.datasets_size());
  }
  for (int i = 0; i < wanted.identity.datasets_size(); ++i) {
    const v1::DatasetIdentity& before = wanted.identity.datasets(i);
    const v1::DatasetIdentity& now = found.identity.datasets(i);
    if (AreSame(before, now)) continue;
    return FailedPrecondition("{} {} is not the same data: {} {}; {} {}", now.key(), now.path(),
                              wanted.who, Text(before), found.who, Text(now));
  }
  return OkStatus();
}

}  // namespace troupe

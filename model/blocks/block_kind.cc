#include "model/blocks/block_kind.h"

#include <fmt/format.h>

#include <vector>

#include "base/check.h"

namespace troupe::model {
namespace {

#define TROUPE_BLOCK_KIND(kind) &kind,
constexpr const BlockKind* kKinds[] = {
#include "model/blocks/block_kinds.def"
};
#undef TROUPE_BLOCK_KIND

}  // namespace

std::span<const BlockKind* const> BlockKinds() { return kKinds; }

const BlockKind* FindBlockKind(char letter) {
  for (const BlockKind* kind : kKinds) {
    if (kind->letter == letter) return kind;
  }
  return nullptr;
}

const BlockKind& BlockKindOf(char letter) {
  const BlockKind* const kind = FindBlockKind(letter);
  TROUPE_CHECK(kind != nullptr && kind->build != nullptr, "block {}", letter);
  return *kind;
}

std::string BuiltLetters() {
  std::vector<char> letters;
  for (const BlockKind* kind : kKinds) {
    if (kind->build != nullptr) letters.push_back(kind->letter);
  }
  const char last = letters.back();
  letters.pop_back();
  return fmt::format("{} and {}", fmt::join(letters, ", "), last);
}

}  // namespace troupe::model

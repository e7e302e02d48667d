#include "plan/job/key_blocks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "model/blocks/pattern.h"

namespace troupe {
namespace {

// The member of a block's record for a trait; null for the keys of every model.
bool model::BlockKind::*MemberOf(v1::BlockTrait trait) {
  switch (trait) {
    case v1::BLOCK_TRAIT_EXPERTS:
      return &model::BlockKind::has_experts;
    default:
      return nullptr;
  }
}

}  // namespace

bool HasBlockThatReads(const v1::KeyOptions& options, std::string_view pattern) {
  const auto member = MemberOf(options.blocks());
  return member == nullptr || model::HasBlock(pattern, member);
}

std::string BlocksThatRead(const v1::KeyOptions& options) {
  const auto member = MemberOf(options.blocks());
  return member == nullptr ? "" : BlocksWith(member);
}

std::string BlocksWith(bool model::BlockKind::*trait) {
  std::vector<char> letters;
  for (const model::BlockKind* kind : model::BlockKinds()) {
    if (kind->*trait) letters.push_back(kind->letter);
  }
  return fmt::format("{}", fmt::join(letters, " or "));
}

}  // namespace troupe

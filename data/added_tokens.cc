#include "data/added_tokens.h"

#include "base/check.h"

namespace troupe {

AddedTokens::AddedTokens(std::span<const AddedToken> tokens) : nodes_(1) {
  for (const AddedToken& token : tokens) {
    TROUPE_CHECK(!token.content.empty());
    begins_[static_cast<unsigned char>(token.content[0])] = true;
    uint32_t node = 0;
    for (const char byte : token.content) {
      uint32_t next = Child(node, byte);
      if (next == 0) {
        next = static_cast<uint32_t>(nodes_.size());
        nodes_.push_back({.byte = byte, .sibling = nodes_[node].child});
        nodes_[node].child = next;
      }
      node = next;
    }
    nodes_[node].id = token.id;
  }
}

uint32_t AddedTokens::Child(uint32_t node, char byte) const {
  uint32_t child = nodes_[node].child;
  while (child != 0 && nodes_[child].byte != byte) child = nodes_[child].sibling;
  return child;
}

std::optional<AddedTokens::Hit> AddedTokens::Find(std::string_view text) const {
  if (nodes_.size() == 1) return std::nullopt;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    if (!begins_[static_cast<unsigned char>(text[begin])]) continue;
    std::optional<Hit> longest;
    uint32_t node = 0;
    for (size_t at = begin; at < text.size(); ++at) {
      node = Child(node, text[at]);
      if (node == 0) break;
      if (nodes_[node].id >= 0) longest = Hit{begin, at + 1 - begin, nodes_[node].id};
    }
    if (longest.has_value()) return longest;
  }
  return std::nullopt;
}

}  // namespace troupe

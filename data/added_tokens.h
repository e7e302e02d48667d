// Finds added tokens, such as `<|endoftext|>`, verbatim in the text before it is split into pieces.
//
// If several matches overlap, the one that begins first is taken, and among those the longest; the
// text that it covers is not searched again. Immutable, thread-safe.
#ifndef TROUPE_DATA_ADDED_TOKENS_H_
#define TROUPE_DATA_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct AddedToken {
  std::string content;  // not empty
  int32_t id;
};

class AddedTokens {
 public:
  explicit AddedTokens(std::span<const AddedToken> tokens);

  struct Hit {
    size_t begin;
    size_t bytes;
    int32_t id;
  };
  // Returns the first match in `text`.
  std::optional<Hit> Find(std::string_view text) const;

 private:
  // A node of the trie; the children of a node form a linked list of siblings.
  struct Node {
    char byte = 0;
    int32_t id = -1;  // below 0: no token ends here
    uint32_t child = 0;
    uint32_t sibling = 0;
  };
  uint32_t Child(uint32_t node, char byte) const;

  std::vector<Node> nodes_;  // 0 is the root, and means "none" as a child or sibling
  std::array<bool, 256> begins_{};
};

}  // namespace troupe

#endif  // TROUPE_DATA_ADDED_TOKENS_H_

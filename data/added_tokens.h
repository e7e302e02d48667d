// Tokens that are found in the text as they stand, before it is cut into pieces: `<|endoftext|>`.
//
// Where several begin at one place the longest is taken, else the one that begins first; what it
// covers is not searched again. Immutable, thread-safe.
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
  // The first one in `text`.
  std::optional<Hit> Find(std::string_view text) const;

 private:
  // A trie: the children of a node are a list of siblings.
  struct Node {
    char byte = 0;
    int32_t id = -1;  // below 0: no token ends here
    uint32_t child = 0;
    uint32_t sibling = 0;
  };
  uint32_t Child(uint32_t node, char byte) const;

  std::vector<Node> nodes_;  // 0 is the root, and "none" as a child or sibling
  std::array<bool, 256> begins_{};
};

}  // namespace troupe

#endif  // TROUPE_DATA_ADDED_TOKENS_H_

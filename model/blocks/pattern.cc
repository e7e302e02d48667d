#include "model/blocks/pattern.h"

#include <charconv>

#include "base/check.h"

namespace troupe::model {
namespace {

constexpr size_t kMaxBlocks = 4096;
constexpr int kMaxNesting = 16;

// Returns "ADMER".
std::string Letters() {
  std::string letters;
  for (const BlockKind* kind : BlockKinds()) letters += kind->letter;
  return letters;
}

// A recursive-descent parser for the grammar in pattern.h; error positions count from 1.
class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : text_(text) {}

  StatusOr<std::string> Parse() {
    TROUPE_ASSIGN_OR_RETURN(std::string blocks, Items(0));
    if (next_ < text_.size()) return Unexpected();
    return blocks;
  }

 private:
  Status Unexpected() const {
    if (next_ >= text_.size()) {
      return InvalidArgument("ends at position {}, must continue with a block or \")\"", next_ + 1);
    }
    return InvalidArgument("has '{}' at position {}; the blocks are the letters {}", text_[next_],
                           next_ + 1, Letters());
  }

  // Parses one or more items, up to ")" or the end.
  StatusOr<std::string> Items(int depth) {
    std::string blocks;
    do {
      TROUPE_ASSIGN_OR_RETURN(std::string item, Item(depth));
      if (blocks.size() + item.size() > kMaxBlocks) return TooMany();
      blocks += item;
    } while (next_ < text_.size() && text_[next_] != ')');
    return blocks;
  }

  StatusOr<std::string> Item(int depth) {
    if (next_ >= text_.size()) return Unexpected();
    std::string item;
    if (text_[next_] == '(') {
      if (depth >= kMaxNesting) {
        return InvalidArgument("nests more than {} brackets at position {}", kMaxNesting,
                               next_ + 1);
      }
      ++next_;
      TROUPE_ASSIGN_OR_RETURN(item, Items(depth + 1));
      if (next_ >= text_.size()) return Unexpected();
      ++next_;
    } else if (FindBlockKind(text_[next_]) != nullptr) {
      item = text_[next_++];
    } else {
      return Unexpected();
    }
    if (next_ >= text_.size() || text_[next_] != 'x') return item;
    ++next_;
    size_t count = 0;
    const char* begin = text_.data() + next_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), count);
    if (error == std::errc::result_out_of_range) return TooMany();
    if (error != std::errc() || count == 0) {
      return InvalidArgument("has no count above 0 after 'x' at position {}", next_ + 1);
    }
    if (count > kMaxBlocks / item.size()) return TooMany();
    next_ += static_cast<size_t>(end - begin);
    std::string repeated;
    for (size_t i = 0; i < count; ++i) repeated += item;
    return repeated;
  }

  static Status TooMany() { return InvalidArgument("has more than {} blocks", kMaxBlocks); }

  std::string_view text_;
  size_t next_ = 0;
};

}  // namespace

StatusOr<std::string> ExpandPattern(std::string_view pattern) {
  return PatternParser(pattern).Parse();
}

int LayerOfBlock(std::string_view blocks, int block) {
  TROUPE_CHECK(block >= 0 && block < static_cast<int>(blocks.size()), "block {} of {}", block,
               blocks.size());
  int layer = -1;
  bool is_full = true;  // the layer has a block that does not begin one
  for (int b = 0; b <= block; ++b) {
    const BlockKind* const kind = FindBlockKind(blocks[static_cast<size_t>(b)]);
    TROUPE_CHECK(kind != nullptr, "block {} is {}", b, blocks[static_cast<size_t>(b)]);
    if (kind->begins_layer || is_full) ++layer;
    is_full = !kind->begins_layer;
  }
  return layer;
}

int NumLayers(std::string_view blocks) {
  return blocks.empty() ? 0 : LayerOfBlock(blocks, static_cast<int>(blocks.size()) - 1) + 1;
}

int CountBlocks(std::string_view pattern, bool BlockKind::*trait) {
  int count = 0;
  for (const char letter : pattern) {
    const BlockKind* const kind = FindBlockKind(letter);
    count += kind != nullptr && kind->*trait;
  }
  return count;
}

bool HasBlock(std::string_view pattern, bool BlockKind::*trait) {
  return CountBlocks(pattern, trait) > 0;
}

}  // namespace troupe::model

// The regular expressions by which byte-level BPE tokenizers cut text into pieces.
//
// tokenizer.json writes them for Oniguruma in its Ruby syntax, with the character classes of
// Unicode 16; they are run by PCRE2 here. The two agree on what is accepted below, once \p{L},
// \p{N} and \s are spelt out: PCRE2 10.42 knows Unicode 14, and its \s has U+180E. Accepted:
// literal characters, classes without nesting, \p{L} \p{N} \P{L} \P{N} \s \S \r \n \t and escaped
// punctuation, groups (…) (?:…) (?i:…) (?=…) (?!…), |, and the quantifiers ? * + {n} {n,} {n,m},
// of which the first three also lazy or possessive. Everything else is refused by name: it means
// something else in the other engine, or was not compared.
//
// Immutable, thread-safe.
#ifndef TROUPE_DATA_SPLIT_PATTERN_H_
#define TROUPE_DATA_SPLIT_PATTERN_H_

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;

namespace troupe {

// The pattern of GPT-2, which ByteLevel with use_regex stands for.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// `pattern` in PCRE2's words. INVALID_ARGUMENT naming what is not accepted, and where.
StatusOr<std::string> TranslateSplitPattern(std::string_view pattern);

class SplitPattern {
 public:
  // INVALID_ARGUMENT also where the pattern matches the empty text.
  static StatusOr<SplitPattern> Compile(std::string_view pattern);

  // Cuts of one text at a time. Not thread-safe; the pattern outlives it.
  class Cutter {
   public:
    explicit Cutter(const SplitPattern& pattern);

    // Bytes of the first piece of `text`: the first match, or what stands before it. The rest of
    // `text` is what the match may look ahead to. RESOURCE_EXHAUSTED where PCRE2 gives up.
    // REQUIRES: text is well-formed UTF-8 and not empty.
    StatusOr<size_t> FirstPiece(std::string_view text);

   private:
    struct FreeMatch {
      void operator()(pcre2_real_match_data_8* match) const;
    };
    const SplitPattern* pattern_;
    std::unique_ptr<pcre2_real_match_data_8, FreeMatch> match_;
  };

 private:
  explicit SplitPattern(std::shared_ptr<pcre2_real_code_8> code) : code_(std::move(code)) {}

  std::shared_ptr<pcre2_real_code_8> code_;
};

}  // namespace troupe

#endif  // TROUPE_DATA_SPLIT_PATTERN_H_

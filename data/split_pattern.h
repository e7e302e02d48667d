// The regular expressions with which byte-level BPE tokenizers split text into pieces.
//
// tokenizer.json writes them for Oniguruma in its Ruby syntax, with the character classes of
// Unicode 16; here PCRE2 runs them. The two engines agree on the constructs accepted below, once
// \p{L}, \p{N} and \s are expanded: PCRE2 10.42 has Unicode 14, and its \s includes U+180E.
// Accepted: literal characters, classes without nesting, \p{L} \p{N} \P{L} \P{N} \s \S \r \n \t and
// escaped punctuation, groups (…) (?:…) (?i:…) (?=…) (?!…), |, and the quantifiers ? * + {n} {n,}
// {n,m}; the first three quantifiers also lazy or possessive. Everything else is refused by name,
// because the other engine gives it a different meaning or because it was not compared.
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

// GPT-2's pattern, which a ByteLevel with use_regex implies.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Translates `pattern` to PCRE2's syntax. INVALID_ARGUMENT names what is not accepted, and where.
StatusOr<std::string> TranslateSplitPattern(std::string_view pattern);

class SplitPattern {
 public:
  // INVALID_ARGUMENT also if the pattern matches the empty text.
  static StatusOr<SplitPattern> Compile(std::string_view pattern);

  // Splits one text at a time. Not thread-safe; the pattern must outlive it.
  class Cutter {
   public:
    explicit Cutter(const SplitPattern& pattern);

    // Returns the bytes of the first piece of `text`: the first match, or the text before it. The
    // match may look ahead into the rest of `text`. RESOURCE_EXHAUSTED if PCRE2 reaches a limit.
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

#include "data/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/check.h"
#include "base/text/utf8.h"

namespace troupe {
namespace {

// The contents of a character class for Unicode 16's letters, numbers and white space. The ranges
// are those that Unicode 15, 15.1 and 16 added to PCRE2 10.42's; a later PCRE2 has them already.
// A-Z, a-z and 0-9 are included too, because PCRE2 finds them faster when they are listed.
constexpr std::string_view kLetters =
    R"(A-Za-z\p{L}\x{1c89}-\x{1c8a}\x{a7cb}-\x{a7cd}\x{a7da}-\x{a7dc}\x{105c0}-\x{105f3})"
    R"(\x{10d4a}-\x{10d65}\x{10d6f}-\x{10d85}\x{10ec2}-\x{10ec4}\x{1123f}-\x{11240})"
    R"(\x{11380}-\x{11389}\x{1138b}\x{1138e}\x{11390}-\x{113b5}\x{113b7}\x{113d1}\x{113d3})"
    R"(\x{11bc0}-\x{11be0}\x{11f02}\x{11f04}-\x{11f10}\x{11f12}-\x{11f33}\x{1342f})"
    R"(\x{13441}-\x{13446}\x{13460}-\x{143fa}\x{16100}-\x{1611d}\x{16d40}-\x{16d6c}\x{18cff})"
    R"(\x{1b132}\x{1b155}\x{1df25}-\x{1df2a}\x{1e030}-\x{1e06d}\x{1e4d0}-\x{1e4eb})"
    R"(\x{1e5d0}-\x{1e5ed}\x{1e5f0}\x{2b739}\x{2ebf0}-\x{2ee5d}\x{31350}-\x{323af})";
constexpr std::string_view kNumbers =
    R"(0-9\p{N}\x{10d40}-\x{10d49}\x{116d0}-\x{116e3}\x{11bf0}-\x{11bf9}\x{11f50}-\x{11f59})"
    R"(\x{16130}-\x{16139}\x{16d70}-\x{16d79}\x{1ccf0}-\x{1ccf9}\x{1d2c0}-\x{1d2d3})"
    R"(\x{1e4f0}-\x{1e4f9}\x{1e5f1}-\x{1e5fa})";
constexpr std::string_view kSpaces =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f})"
    R"(\x{205f}\x{3000})";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  StatusOr<std::string> Run() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\') {
        TROUPE_RETURN_IF_ERROR(Escape(/*in_class=*/false));
      } else if (c == '[') {
        TROUPE_RETURN_IF_ERROR(Class());
      } else if (c == '(') {
        TROUPE_RETURN_IF_ERROR(Group());
      } else if (c == '{') {
        TROUPE_RETURN_IF_ERROR(Count());
      } else if (c == '.' || c == '^' || c == '$') {
        return Refuse(1);
      } else {
        out_ += c;
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  // Refuses the `bytes` bytes of the pattern at the current position by name.
  Status Refuse(size_t bytes) const {
    return InvalidArgument("\"{}\" at byte {} of the pattern \"{}\" is not supported",
                           pattern_.substr(at_, bytes), at_, pattern_);
  }
  bool Next(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }

  Status Escape(bool in_class) {
    struct Set {
      std::string_view written;
      std::string_view members;
      bool negated;
    };
    static constexpr Set kSets[] = {{R"(\p{L})", kLetters, false}, {R"(\p{N})", kNumbers, false},
                                    {R"(\s)", kSpaces, false},     {R"(\P{L})", kLetters, true},
                                    {R"(\P{N})", kNumbers, true},  {R"(\S)", kSpaces, true}};
    for (const Set& set : kSets) {
      if (!Next(set.written)) continue;
      if (in_class) {
        if (set.negated) return Refuse(set.written.size());
        out_ += set.members;
      } else {
        out_ += fmt::format("[{}{}]", set.negated ? "^" : "", set.members);
      }
      at_ += set.written.size();
      return OkStatus();
    }
    const char c = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    const bool control = c == 'r' || c == 'n' || c == 't';
    const bool punctuation = c > ' ' && c < 0x7F && !std::isalnum(static_cast<unsigned char>(c));
    if (!control && !punctuation) {
      const size_t close = pattern_.find('}', at_);
      return Refuse(c == 'p' || c == 'P' ? close - at_ + 1 : 2);
    }
    out_ += '\\';
    out_ += c;
    at_ += 2;
    return OkStatus();
  }

  Status Class() {
    const size_t begin = at_;
    out_ += pattern_[at_++];
    if (Next("^")) out_ += pattern_[at_++];
    if (Next("]")) return Refuse(1);
    while (at_ < pattern_.size() && pattern_[at_] != ']') {
      if (Next("[") || Next("&&")) return Refuse(Next("[") ? 1 : 2);
      if (Next("\\")) {
        TROUPE_RETURN_IF_ERROR(Escape(/*in_class=*/true));
      } else {
        out_ += pattern_[at_++];
      }
    }
    if (at_ == pattern_.size()) {
      return InvalidArgument("the character class at byte {} of the pattern \"{}\" is not closed",
                             begin, pattern_);
    }
    out_ += pattern_[at_++];
    return OkStatus();
  }

  Status Group() {
    if (Next("(*")) return Refuse(2);
    if (!Next("(?")) {
      out_ += pattern_[at_++];
      return OkStatus();
    }
    for (const std::string_view opening : {"(?:", "(?i:", "(?=", "(?!"}) {
      if (!Next(opening)) continue;
      out_ += opening;
      at_ += opening.size();
      return OkStatus();
    }
    return Refuse(3);
  }

  Status Count() {
    const size_t close = pattern_.find('}', at_);
    if (close == std::string_view::npos) return Refuse(1);
    const std::string_view inside = pattern_.substr(at_ + 1, close - at_ - 1);
    const bool digits = !inside.empty() && std::isdigit(static_cast<unsigned char>(inside[0])) &&
                        inside.find_first_not_of("0123456789,") == std::string_view::npos;
    if (!digits) return Refuse(inside.size() + 2);
    // Ruby interprets {n}+ and {n}? differently from PCRE2.
    const char after = close + 1 < pattern_.size() ? pattern_[close + 1] : '\0';
    if (after == '+' || after == '?') return Refuse(inside.size() + 3);
    out_ += pattern_.substr(at_, close + 1 - at_);
    at_ = close + 1;
    return OkStatus();
  }

  const std::string_view pattern_;
  size_t at_ = 0;
  std::string out_;
};

std::string ErrorText(int error) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

StatusOr<std::string> TranslateSplitPattern(std::string_view pattern) {
  if (pattern.find('\0') != std::string_view::npos || WellFormedPrefix(pattern) < pattern.size()) {
    return InvalidArgument("the pattern contains a zero byte or is not UTF-8");
  }
  return Translator(pattern).Run();
}

StatusOr<SplitPattern> SplitPattern::Compile(std::string_view pattern) {
  TROUPE_ASSIGN_OR_RETURN(const std::string translated, TranslateSplitPattern(pattern));
  int error = 0;
  PCRE2_SIZE error_at = 0;
  std::shared_ptr<pcre2_code> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_CAPTURE, &error, &error_at, nullptr),
      pcre2_code_free);
  if (code == nullptr) {
    return InvalidArgument("the pattern \"{}\" does not compile: {}", pattern, ErrorText(error));
  }
  uint32_t matches_empty = 0;
  pcre2_pattern_info(code.get(), PCRE2_INFO_MATCHEMPTY, &matches_empty);
  if (matches_empty != 0) {
    return InvalidArgument("the pattern \"{}\" matches the empty text, which is not supported",
                           pattern);
  }
  // If the kernel forbids JIT compilation, PCRE2 interprets the pattern: slower, same result.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return SplitPattern(std::move(code));
}

void SplitPattern::Cutter::FreeMatch::operator()(pcre2_real_match_data_8* match) const {
  pcre2_match_data_free(match);
}

SplitPattern::Cutter::Cutter(const SplitPattern& pattern)
    : pattern_(&pattern), match_(pcre2_match_data_create(1, nullptr)) {
  TROUPE_CHECK(match_ != nullptr);
}

StatusOr<size_t> SplitPattern::Cutter::FirstPiece(std::string_view text) {
  const int result = pcre2_match(pattern_->code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                 text.size(), 0, PCRE2_NO_UTF_CHECK, match_.get(), nullptr);
  if (result == PCRE2_ERROR_NOMATCH) return text.size();
  if (result < 0) {
    return ResourceExhausted("matching with the tokenizer's pattern failed: {}", ErrorText(result));
  }
  const PCRE2_SIZE* const bounds = pcre2_get_ovector_pointer(match_.get());
  return bounds[0] > 0 ? bounds[0] : bounds[1];
}

}  // namespace troupe

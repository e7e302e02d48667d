#include "cli/output/prepare_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/count_text.h"
#include "base/text/printable.h"
#include "base/text/scaled.h"

namespace troupe {

double TokensPerSecond(const PrepareResult& result, double seconds) {
  return static_cast<double>(result.tokens) / std::max(seconds, 1e-9);
}

std::string PrepareText(const PrepareResult& result, double seconds, const TextStyle& style) {
  std::string text = WrappedLine(fmt::format("{}, {} of {} of text, {:.1f} s, {:.0f} tokens/s",
                                             CountText(result.documents, "document"),
                                             CountText(result.tokens, "token"),
                                             Scaled(static_cast<double>(result.text_bytes), "B"),
                                             seconds, TokensPerSecond(result, seconds)),
                                 style) +
                     WrappedLine(fmt::format("token ids are below {}, and {} ends a document",
                                             result.vocab_size, result.end_of_document),
                                 style);
  for (const std::string& file : result.files) text += PrintableLine(file) + "\n";
  return text;
}

}  // namespace troupe

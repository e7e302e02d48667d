// The blocks of a model as a pattern for people. Pure.
#ifndef TROUPE_REPORT_TEXT_SHORT_PATTERN_H_
#define TROUPE_REPORT_TEXT_SHORT_PATTERN_H_

#include <string>
#include <string_view>

namespace troupe {

// Returns "(AD)x17" for seventeen times "AD": a pattern that expands to `blocks`
// (model/blocks/pattern.h), with repeated letters written once where that is shorter. REQUIRES:
// `blocks` is an expanded pattern.
std::string ShortPattern(std::string_view blocks);

}  // namespace troupe

#endif  // TROUPE_REPORT_TEXT_SHORT_PATTERN_H_

// Text in UTF-8.
#ifndef TROUPE_PLAN_JOB_UTF8_H_
#define TROUPE_PLAN_JOB_UTF8_H_

#include <string_view>

namespace troupe {

// Whether `text` is UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing beyond
// U+10FFFF. Pure.
bool IsUtf8(std::string_view text);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_UTF8_H_

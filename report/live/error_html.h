// The page for a request that cannot be answered. Pure.
#ifndef TROUPE_REPORT_LIVE_ERROR_HTML_H_
#define TROUPE_REPORT_LIVE_ERROR_HTML_H_

#include <string>

namespace troupe {

// Returns a page with the status code, a title such as "Not found" and a text that explains it. It
// is updated by the script if the fault is the server's (a code of 500 or more), which may end.
std::string ErrorHtml(int code, const std::string& title, const std::string& text);

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_ERROR_HTML_H_

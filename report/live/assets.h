// The files that the live pages load, embedded in the program. Thread-safe.
#ifndef TROUPE_REPORT_LIVE_ASSETS_H_
#define TROUPE_REPORT_LIVE_ASSETS_H_

#include <string_view>

namespace troupe {

// /style.css: PageStyle() and report/live/style.css.
std::string_view StyleSheet();
// /page.js: report/live/page.js.
std::string_view PageScript();
// /icon.svg: report/live/icon.svg.
std::string_view PageIcon();

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_ASSETS_H_

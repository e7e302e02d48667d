// The frame that all live pages have: the head, the header with the place where the script reports
// how current the page is, <main> and the footer. A page has no script, style or attribute "style"
// of its own, so that its content security policy forbids all of them. Pure.
#ifndef TROUPE_REPORT_LIVE_FRAME_H_
#define TROUPE_REPORT_LIVE_FRAME_H_

#include <cstdint>
#include <string>

#include "report/markup.h"

namespace troupe {

// The policy that each page states. A server may state it too, with `frame-ancestors`, which has no
// effect within a page.
inline constexpr char kLivePagePolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'";

struct LiveFrame {
  std::string title;       // that of the document
  std::string caller;      // empty: not shown
  std::string version;     // empty: not shown
  int64_t now_ns = 0;      // 0: not shown
  bool is_final = false;   // the script may stop asking for newer versions
  bool is_updated = true;  // the page has the script
};

// Begins the page up to and including <main>, which contains sections only.
void OpenLivePage(const LiveFrame& frame, Markup* page);
// Ends what OpenLivePage began.
void CloseLivePage(const LiveFrame& frame, Markup* page);

// Begins an element that may be wider than the screen and scrolls within itself.
void OpenWide(Markup* page);

// Draws a paragraph that must not be overlooked. `kind`: "warn" or "bad", a constant.
void DrawAlert(const char* kind, const std::string& subject, const std::string& text, Markup* page);

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_FRAME_H_

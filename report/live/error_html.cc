#include "report/live/error_html.h"

#include <fmt/format.h>

#include "report/live/frame.h"
#include "report/live/links.h"
#include "report/live/live_text.h"

namespace troupe {
namespace {

constexpr int kFirstFaultOfServer = 500;
constexpr size_t kMostErrorCharacters = 4000;

}  // namespace

std::string ErrorHtml(int code, const std::string& title, const std::string& text) {
  const std::string heading = fmt::format("{} {}", code, Clipped(title, kMostErrorCharacters));
  const bool may_end = code >= kFirstFaultOfServer;
  const LiveFrame frame = {
      .title = heading + " · Troupe", .is_final = !may_end, .is_updated = may_end};
  Markup page;
  OpenLivePage(frame, &page);
  page.Open("section", {{"id", "error"}});
  page.Element("h1", {}, heading);
  page.Element("p", {{"class", "error-text"}}, Clipped(text, kMostErrorCharacters));
  page.Open("p");
  page.Element("a", {{"href", ClusterLink("", "")}}, "to the cluster");
  page.Close();
  page.Close();
  CloseLivePage(frame, &page);
  return page.text();
}

}  // namespace troupe

#include "report/live/frame.h"

#include "report/live/links.h"
#include "report/live/live_text.h"

namespace troupe {
namespace {

constexpr size_t kMostCallerCharacters = 100;

void DrawHead(const LiveFrame& frame, Markup* page) {
  page->Open("head");
  page->Empty("meta", {{"charset", "utf-8"}});
  page->Empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  page->Empty("meta", {{"http-equiv", "Content-Security-Policy"}, {"content", kLivePagePolicy}});
  page->Element("title", {}, frame.title);
  page->Empty("link", {{"rel", "stylesheet"}, {"href", "/style.css"}});
  page->Empty("link", {{"rel", "icon"}, {"type", "image/svg+xml"}, {"href", "/icon.svg"}});
  if (frame.is_updated) page->Element("script", {{"src", "/page.js"}, {"defer", ""}}, "");
  page->Close();
}

void DrawHeader(const LiveFrame& frame, Markup* page) {
  page->Open("header");
  page->Open("a", {{"class", "brand"}, {"href", ClusterLink("", "")}});
  page->Empty("img", {{"src", "/icon.svg"}, {"alt", ""}, {"width", "20"}, {"height", "20"}});
  page->Text("Troupe");
  page->Close();
  page->Element("a", {{"href", ClusterLink("", "")}}, "Cluster");
  if (!frame.caller.empty()) {
    page->Element("span", {{"class", "caller"}, {"title", "who you are for the coordinator"}},
                  Clipped(frame.caller, kMostCallerCharacters));
  }
  page->Element("p", {{"id", "page-state"}, {"aria-live", "off"}},
                frame.now_ns == 0 ? "" : "as of " + MinuteText(frame.now_ns));
  page->Close();
}

}  // namespace

void OpenLivePage(const LiveFrame& frame, Markup* page) {
  page->Constant("<!DOCTYPE html>\n");
  page->Open("html", {{"lang", "en"}});
  DrawHead(frame, page);
  page->Open("body", {{"class", "live"}});
  DrawHeader(frame, page);
  page->Open("main", {{"data-final", frame.is_final ? "true" : "false"}});
}

void CloseLivePage(const LiveFrame& frame, Markup* page) {
  page->Close();
  page->Element("footer", {},
                frame.version.empty() ? "Troupe: this page changes nothing."
                                      : "Troupe " + frame.version + ": this page changes nothing.");
  page->Close();
  page->Close();
}

void OpenWide(Markup* page) { page->Open("div", {{"class", "wide"}}); }

void DrawAlert(const char* kind, const std::string& subject, const std::string& text,
               Markup* page) {
  page->Open("p", {{"class", std::string("alert ") + kind}});
  page->Element("b", {}, subject);
  page->Element("span", {}, text);
  page->Close();
}

}  // namespace troupe

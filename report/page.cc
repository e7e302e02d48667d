#include "report/page.h"

namespace troupe {
namespace {

// The colours differ in lightness too, so that readers who see fewer colours can distinguish them.
constexpr const char* kColours = R"(
  :root { color-scheme: light dark; --text: #1b1f24; --soft: #59636e; --page: #ffffff;
    --panel: #f4f6f8; --line: #d5dae0; --c0: #0072b2; --c1: #d17a00; --c2: #008062; --c3: #b0508b;
    --c4: #8a93a0; --c5: #4aa3da; --c6: #a68a00; --c7: #c2410c; --c8: #5b6472; --bad: #c81e1e;
    --on: #ffffff; }
  @media (prefers-color-scheme: dark) { :root { --text: #e8ebef; --soft: #9aa5b1;
    --page: #14181d; --panel: #1d232a; --line: #39424d; --c0: #4aa8e8; --c1: #f0a03c;
    --c2: #2fc39b; --c3: #e08abf; --c4: #7d8794; --c5: #8fcbf2; --c6: #dcc23c; --c7: #f5824f;
    --c8: #a3adb9; --bad: #ff6b6b; --on: #10151b; } }
)";

constexpr const char* kText = R"(
  * { box-sizing: border-box; }
  body { margin: 0 auto; padding: 1rem; max-width: 76rem; background: var(--page);
    color: var(--text); font: 1rem/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
  h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
  p { margin: .3rem 0; } .note, .subtitle { color: var(--soft); font-size: .9rem; }
  .facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .6rem;
    margin: 1rem 0; }
  .facts div { background: var(--panel); border-radius: .5rem; padding: .5rem .7rem; }
  .facts dt { color: var(--soft); font-size: .8rem; } .facts dd { margin: 0; font-weight: 600; }
  .banner { border: 2px solid var(--bad); border-left-width: .5rem; border-radius: .5rem;
    padding: .5rem .8rem; margin: 1rem 0; }
  .banner ul { margin: .3rem 0; padding-left: 1.2rem; }
  .charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
    gap: .8rem; margin-top: .6rem; }
)";

constexpr const char* kDrawings = R"(
  figure { margin: 0 0 .8rem; background: var(--panel); border-radius: .5rem; padding: .6rem;
    min-width: 0; }
  figcaption { font-weight: 600; margin-bottom: .3rem; }
  svg { display: block; width: 100%; height: auto; }
  svg text { fill: var(--soft); font-size: 12px; }
  svg text.left { text-anchor: end; } svg text.below, svg text.block { text-anchor: middle; }
  svg text.block { fill: var(--on); font-size: 11px; }
  /* Words on these colours are dark in both themes; those on a pale block are as elsewhere. */
  .full :is(.c1, .c4, .c5, .c6) + text.block { fill: #10151b; }
  .pale .fill + text.block { fill: var(--text); }
  .grid { stroke: var(--line); stroke-width: 1; }
  .series { fill: none; stroke: var(--c0); stroke-width: 1.8; stroke-linejoin: round;
    stroke-linecap: round; }
  .series.s1 { stroke: var(--c1); } .series.sparse { stroke-width: 1; }
  .dot { fill: var(--c0); } .dot.s1 { fill: var(--c1); }
  .checkpoint { stroke: var(--c2); stroke-width: 2; }
  .recovery { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 4 3; }
  svg.bar { height: 1.4rem; border-radius: .2rem; } p.bar { font-size: .9rem; }
  .fill.c0 { fill: var(--c0); } .fill.c1 { fill: var(--c1); } .fill.c2 { fill: var(--c2); }
  .fill.c3 { fill: var(--c3); } .fill.c4 { fill: var(--c4); } .fill.c5 { fill: var(--c5); }
  .fill.c6 { fill: var(--c6); } .fill.c7 { fill: var(--c7); } .fill.c8 { fill: var(--c8); }
  .fill { stroke: var(--panel); stroke-width: 1; } .pale rect { fill-opacity: .4; }
  .legend { font-size: .85rem; color: var(--soft); }
  .item { display: inline-block; max-width: 100%; margin-right: .8rem; vertical-align: bottom;
    white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
  .swatch { display: inline-block; width: .8rem; height: .8rem; border-radius: .2rem;
    margin-right: .35rem; vertical-align: -.1rem; background: var(--c0); }
  .swatch.round { border-radius: 50%; }
  .c0 { background: var(--c0); } .c1, .swatch.s1 { background: var(--c1); }
  .c2 { background: var(--c2); } .c3 { background: var(--c3); } .c4 { background: var(--c4); }
  .c5 { background: var(--c5); } .c6 { background: var(--c6); } .c7 { background: var(--c7); }
  .c8 { background: var(--c8); }
  .swatch.of-recovery { background: var(--bad); } .swatch.of-checkpoint { background: var(--c2); }
  .wide { overflow-x: auto; } svg.timeline { min-width: 56rem; }
  .ranks { display: flex; flex-wrap: wrap; gap: .25rem; align-items: center; }
  .ranks b { min-width: 4.5rem; font-weight: 600; }
  .rank, .block { border-radius: .25rem; padding: 0 .4rem; font-size: .85rem; }
  span:is(.rank, .block) { --tone: var(--c8); color: var(--text); display: inline-block;
    margin: .05rem; background: color-mix(in srgb, var(--tone) 30%, var(--page)); }
  span.c0 { --tone: var(--c0); } span.c1 { --tone: var(--c1); } span.c2 { --tone: var(--c2); }
  span.c3 { --tone: var(--c3); } span.c4 { --tone: var(--c4); } span.c5 { --tone: var(--c5); }
  span.c6 { --tone: var(--c6); } span.c7 { --tone: var(--c7); }
  table { border-collapse: collapse; font-size: .9rem; width: 100%; }
  table.stages { min-width: 40rem; overflow-wrap: normal; }
  table.numbers { overflow-wrap: normal; white-space: nowrap; }
  .rows th { min-width: 12rem; }
  summary { cursor: pointer; padding: .25rem 0; }
  th, td { text-align: left; padding: .25rem .5rem; border-bottom: 1px solid var(--line);
    vertical-align: top; }
  th { color: var(--soft); font-weight: 600; }
  .suspect { color: var(--bad); }
  #by-time:checked ~ .by-step, #by-step:checked ~ .by-time { display: none; }
  label { margin-right: .4rem; font-size: .85rem; white-space: nowrap; }
)";

// On the screen of a phone, charts are small, so that their words must be larger to be read.
constexpr const char* kNarrow = R"(
  @media (max-width: 600px) { svg.chart text { font-size: 15px; }
    .rows tbody, .rows tr, .rows th, .rows td { display: block; }
    .rows th { border-bottom: 0; padding-bottom: 0; } .rows td { padding-top: 0; } }
)";

}  // namespace

void OpenPage(const std::string& title, const std::string& subtitle, Markup* page) {
  page->Constant("<!DOCTYPE html>\n");
  page->Open("html", {{"lang", "en"}});
  page->Open("head");
  page->Empty("meta", {{"charset", "utf-8"}});
  page->Empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  page->Empty("meta", {{"http-equiv", "Content-Security-Policy"},
                       {"content", "default-src 'none'; style-src 'unsafe-inline'"}});
  page->Element("title", {}, title);
  page->Open("style");
  page->Constant(PageStyle().c_str());
  page->Close();
  page->Close();
  page->Open("body");
  page->Element("h1", {}, title);
  if (!subtitle.empty()) page->Element("p", {{"class", "subtitle"}}, subtitle);
}

void ClosePage(Markup* page) {
  page->Close();
  page->Close();
}

const std::string& PageStyle() {
  static const std::string style = std::string(kColours) + kText + kDrawings + kNarrow;
  return style;
}

void OpenSection(const char* id, const char* title, Markup* page) {
  page->Open("section", {{"id", id}});
  page->Element("h2", {}, title);
}

void CloseSection(Markup* page) { page->Close(); }

void DrawFacts(const TextRows& facts, Markup* page) {
  page->Open("dl", {{"class", "facts"}});
  for (const auto& [name, value] : facts) {
    page->Open("div");
    page->Element("dt", {}, name);
    page->Element("dd", {}, value);
    page->Close();
  }
  page->Close();
}

void DrawRows(const TextRows& rows, Markup* page) {
  page->Open("div", {{"class", "wide"}});
  page->Open("table", {{"class", "rows"}});
  for (const auto& [name, value] : rows) {
    page->Open("tr");
    page->Element("th", {}, name);
    page->Element("td", {}, value);
    page->Close();
  }
  page->Close();
  page->Close();
}

}  // namespace troupe

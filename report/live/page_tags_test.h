// Reads the tags of a page, and checks what holds for every live page.
#ifndef TROUPE_REPORT_LIVE_PAGE_TAGS_TEST_H_
#define TROUPE_REPORT_LIVE_PAGE_TAGS_TEST_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/text/printable.h"

namespace troupe {

struct PageTag {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string parent;  // name of the element that contains it
};

// Returns the start tags of a page whose elements all end, in order. Attributes have double quotes.
inline std::vector<PageTag> TagsOf(const std::string& html) {
  std::vector<PageTag> tags;
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    if (html[at + 1] == '!') continue;
    size_t end = html.find_first_of(" />", at + 2);
    const std::string name = html.substr(at + 1, end - at - 1);
    if (name.starts_with('/')) {
      EXPECT_FALSE(open.empty() || "/" + open.back() != name) << name << " ends nothing";
      if (!open.empty()) open.pop_back();
      continue;
    }
    PageTag tag = {name, {}, open.empty() ? "" : open.back()};
    while (html[end] == ' ') {
      const size_t equals = html.find("=\"", end), close = html.find('"', equals + 2);
      if (equals == std::string::npos || close == std::string::npos) {
        ADD_FAILURE() << "an attribute has no end: " << html.substr(at, 100);
        return tags;
      }
      const std::string attribute = html.substr(end + 1, equals - end - 1);
      EXPECT_TRUE(
          tag.attributes.emplace(attribute, html.substr(equals + 2, close - equals - 2)).second)
          << attribute << " is there twice";
      end = close + 1;
    }
    if (html[end] == '>') open.push_back(name);
    tags.push_back(std::move(tag));
  }
  EXPECT_TRUE(open.empty()) << "<" << (open.empty() ? "" : open.back()) << "> does not end";
  return tags;
}

inline size_t CountOf(const std::string& name, const std::vector<PageTag>& tags) {
  return static_cast<size_t>(std::count_if(tags.begin(), tags.end(),
                                           [&](const PageTag& tag) { return tag.name == name; }));
}

// Whether the address is one of this host: a path, or a place in the page.
inline bool IsOwnAddress(const std::string& address) {
  const std::string allowed =
      "abcdefghijklmnopqrstuvwxyz"
      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%/";
  if (address.starts_with("#")) return address.find_first_not_of(allowed, 1) == std::string::npos;
  if (!address.starts_with("/") || address.starts_with("//")) return false;
  return address.find_first_not_of(allowed + "?=&;") == std::string::npos;
}

// Checks that the page has no script, style or address but those of the product, that its ids are
// unique, that <main> consists of sections with ids, and that no character of it is a control.
inline void CheckLivePage(const std::string& html, size_t scripts) {
  const std::vector<PageTag> tags = TagsOf(html);
  EXPECT_EQ(CountOf("script", tags), scripts);
  EXPECT_EQ(CountOf("img", tags), 1u) << "the icon";
  EXPECT_EQ(CountOf("main", tags), 1u);
  std::set<std::string> ids;
  for (const PageTag& tag : tags) {
    const std::set<std::string> kForbidden = {"style", "iframe", "object", "embed",
                                              "form",  "base",   "i7"};
    EXPECT_FALSE(kForbidden.contains(tag.name)) << tag.name;
    for (const auto& [name, value] : tag.attributes) {
      EXPECT_FALSE(name.starts_with("on") || name == "style" || name == "data-x") << name;
      if (name == "href" || name == "src") {
        EXPECT_TRUE(IsOwnAddress(value)) << value;
      }
      if (name == "id") {
        EXPECT_TRUE(ids.insert(value).second) << value << " is there twice";
        EXPECT_EQ(value.find_first_of(" \n\t"), std::string::npos) << value;
      }
    }
    if (tag.parent == "main") {
      EXPECT_TRUE(tag.name == "section" && tag.attributes.contains("id")) << tag.name;
    }
    if (tag.name == "script") {
      EXPECT_TRUE(tag.attributes.contains("src") && tag.attributes.at("src") == "/page.js");
    }
  }
  EXPECT_EQ(PrintableLines(html), html) << "controls, or bytes that are no UTF-8";
}

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_PAGE_TAGS_TEST_H_

#include "base/http/url_text.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {
namespace {

TEST(UrlText, TheKeysAndValuesOfAQueryAreDecoded) {
  const std::pair<std::string_view, QueryPairs> cases[] = {
      {"", {}},
      {"k", {{"k", ""}}},
      {"k=", {{"k", ""}}},
      {"k=a=b", {{"k", "a=b"}}},
      {"a=1&k=2&b=3", {{"a", "1"}, {"b", "3"}, {"k", "2"}}},
      {"&&k=2&", {{"k", "2"}}},
      {"K=1&k=2", {{"K", "1"}, {"k", "2"}}},
      {"=k", {{"", "k"}}},
      {"%6B=1", {{"k", "1"}}},
      {"k=a+b%2Bc%26d", {{"k", "a b+c&d"}}},
      {"k=%C3%a4", {{"k", "\xC3\xA4"}}}};
  for (const auto& [query, pairs] : cases) EXPECT_EQ(DecodeQuery(query), pairs) << query;
}

TEST(UrlText, AQueryWithOneKeyTwiceOrAnyPartThatCannotBeDecodedGivesNothing) {
  for (const char* query : {"k=1&k=1", "k=1&%6b", "a=%zz&k=1", "%zz=1&k=1", "k=1&%", "k=1&\xFF"})
    EXPECT_EQ(DecodeQuery(query), std::nullopt) << query;
}

// Each is a path and the value of a query.
TEST(UrlText, WhatCannotBeDecodedGivesNothing) {
  for (const char* text :
       {"%",        "%4",     "a%",        "%zz",          "%4g",    "%g4",   "% 4",
        "%+4",      "%-4",    "%0x41",     "%%41",         "%00",    "a%00b", "%0A",
        "%0d",      "%09",    "%1F",       "%7f",          "%C2%85", "%FF",   "%C3",
        "%C3a",     "%C0%80", "%ED%A0%80", "%F4%90%80%80", "\xFF",   "a\nb",  "%E2%80%A8",
        "%E2%80%AE"}) {
    EXPECT_EQ(DecodePath(text), std::nullopt) << text;
    EXPECT_EQ(DecodeQuery("k=" + std::string(text)), std::nullopt) << text;
  }
}

TEST(UrlText, APathIsDecodedOnceAndKeepsItsPlus) {
  EXPECT_EQ(DecodePath(""), "");
  EXPECT_EQ(DecodePath("/jobs/a-1/logs"), "/jobs/a-1/logs");
  EXPECT_EQ(DecodePath("/a+b%20c"), "/a+b c");
  EXPECT_EQ(DecodePath("/%2541%2F..%2f"), "/%41/../");
  EXPECT_EQ(DecodePath("/\xE2\x82\xAC%E2%82%AC"), "/\xE2\x82\xAC\xE2\x82\xAC");
}

}  // namespace
}  // namespace troupe

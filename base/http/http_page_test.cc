#include "base/http/http_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// A request with this text between its first line and the empty line.
HttpRequest WithHeaders(const std::string& lines) {
  return ParseRequest("GET / HTTP/1.1\r\n" + lines + "\r\n");
}

TEST(HttpPage, ThePathOfARequestIsFound) {
  const HttpRequest request = ParseRequest("GET /metrics?x=1?y HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(request.path, "/metrics");
  EXPECT_EQ(request.query, "x=1?y");
  EXPECT_EQ(request.refused, 0);
  EXPECT_FALSE(request.only_head);
  EXPECT_TRUE(ParseRequest("HEAD / HTTP/1.0\r\n\r\n").only_head);
  EXPECT_EQ(ParseRequest("GET /a%2Fb HTTP/1.1\r\n\r\n").path, "/a%2Fb");
}

TEST(HttpPage, WhatIsNoRequestForAPageIsRefused) {
  for (const char* head :
       {"", "\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/2\r\n\r\n",
        "GET  HTTP/1.1\r\n\r\n", "GET metrics HTTP/1.1\r\n\r\n", "GET /a b HTTP/1.1\r\n\r\n",
        "GET /a\tb HTTP/1.1\r\n\r\n", "GET /a\nb HTTP/1.1\r\n\r\n", "\x16\x03\x01\r\n\r\n"}) {
    EXPECT_EQ(ParseRequest(head).refused, 400) << head;
  }
  EXPECT_EQ(ParseRequest("POST / HTTP/1.1\r\n\r\n").refused, 405);
}

TEST(HttpPage, HeadersAreFoundWhateverTheCaseOfTheirNames) {
  const HttpRequest request = WithHeaders(
      "hOST:  lab.example:80\t\r\nAUTHORIZATION: Basic YTpi\r\nX-Other: b\r\n"
      "if-none-match: \"1\", \"2\"\r\nIf-None-Match:\"3\"\r\n");
  EXPECT_EQ(request.refused, 0);
  EXPECT_EQ(request.host, "lab.example:80");
  EXPECT_EQ(request.authorization, "Basic YTpi");
  EXPECT_EQ(request.if_none_match, "\"1\", \"2\", \"3\"");
  EXPECT_EQ(request.certificate, "");
}

TEST(HttpPage, TheReasonForWhichABrowserAsksIsFound) {
  const HttpRequest request = WithHeaders(
      "Sec-Fetch-Site: cross-site\r\nsec-fetch-mode: no-cors\r\nSEC-FETCH-DEST: image\r\n");
  EXPECT_EQ(request.fetch_site, "cross-site");
  EXPECT_EQ(request.fetch_mode, "no-cors");
  EXPECT_EQ(request.fetch_dest, "image");
  EXPECT_EQ(WithHeaders("Host: a\r\n").fetch_site, "");
}

TEST(HttpPage, WhatFollowsTheEmptyLineIsNoHeader) {
  const HttpRequest request = ParseRequest("GET / HTTP/1.1\r\nHost: a\r\n\r\nHost: b\r\n\r\n");
  EXPECT_EQ(request.refused, 0);
  EXPECT_EQ(request.host, "a");
}

TEST(HttpPage, HeadersThatTwoReadersMayUnderstandInTwoWaysAreRefused) {
  EXPECT_EQ(WithHeaders("X-A:\r\nX-A: \r\nHost:\r\n").refused, 0);
  for (const char* lines :
       {"Host: a\r\nHost: a\r\n", "Host:\r\nhost: a\r\n",
        "Authorization: a\r\nauthorization: b\r\n",
        "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n", "Host: a\r\n b\r\n",
        "Host: a\r\n\tb: c\r\n", " Host: a\r\n", "Host : a\r\n", "Host\t: a\r\n", "Host\r\n",
        ": a\r\n", "H\xC3\xB6st: a\r\n", "Host: a\nX: b\r\n", "Host: a\rX: b\r\n",
        "Host: a\x01\r\n", "Host: a\x7F\r\n"}) {
    EXPECT_EQ(WithHeaders(lines).refused, 400) << lines;
  }
  EXPECT_EQ(WithHeaders(std::string("Host: a\0b\r\n", 11)).refused, 400);
}

TEST(HttpPage, AnAnswerStatesItsLengthAndEndsTheConnection) {
  EXPECT_EQ(AnswerOf({200, "abc", "text/x"}, false),
            "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 3\r\n"
            "Connection: close\r\n\r\nabc");
  const std::string head = AnswerOf({404, "abc"}, true);
  EXPECT_TRUE(head.ends_with("Content-Length: 3\r\nConnection: close\r\n\r\n")) << head;
  EXPECT_NE(AnswerOf({405, ""}, false).find("Allow: GET, HEAD\r\n"), std::string::npos);
}

TEST(HttpPage, AnAnswerHasTheHeadersOfItsPage) {
  const HttpPage page{.code = 401,
                      .body = "abc",
                      .headers = {{"WWW-Authenticate", "Basic"}, {"Cache-Control", "no-store"}}};
  EXPECT_EQ(AnswerOf(page, false),
            "HTTP/1.1 401 Unauthorized\r\nContent-Type: text/plain; charset=utf-8\r\n"
            "Content-Length: 3\r\nWWW-Authenticate: Basic\r\nCache-Control: no-store\r\n"
            "Connection: close\r\n\r\nabc");
}

TEST(HttpPage, APageThatIsNotModifiedHasNoBodyAndNoLength) {
  EXPECT_EQ(AnswerOf({.code = 304, .body = "abc", .headers = {{"ETag", "\"1\""}}}, false),
            "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nConnection: close\r\n\r\n");
}

TEST(HttpPage, AHeaderNeverBeginsAnotherLine) {
  for (const std::string value : {"a\r\nX-Evil: b", "a\nX-Evil: b", "a\rX-Evil: b", "a\x7F"}) {
    EXPECT_THAT(AnswerOf({.code = 200, .body = "abc", .headers = {{"X-A", value}}}, false),
                AllOf(StartsWith("HTTP/1.1 500 Internal Server Error\r\n"),
                      EndsWith("\r\n\r\nthe header X-A has a control character\n"),
                      Not(HasSubstr("X-Evil"))));
  }
}

TEST(HttpPage, CodesHaveTheirPhrases) {
  EXPECT_THAT(AnswerOf({421, ""}, false), StartsWith("HTTP/1.1 421 Misdirected Request\r\n"));
  EXPECT_THAT(AnswerOf({429, ""}, false), StartsWith("HTTP/1.1 429 Too Many Requests\r\n"));
  EXPECT_THAT(AnswerOf({503, ""}, false), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(AnswerOf({299, ""}, false), StartsWith("HTTP/1.1 299 \r\n"));
}

}  // namespace
}  // namespace troupe

#include "base/http/http_page.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

TEST(HttpPage, ThePathOfARequestIsFound) {
  const HttpRequest request = ParseRequest("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(request.path, "/metrics");
  EXPECT_EQ(request.refused, 0);
  EXPECT_FALSE(request.only_head);
  EXPECT_TRUE(ParseRequest("HEAD / HTTP/1.0\r\n\r\n").only_head);
}

TEST(HttpPage, WhatIsNoRequestForAPageIsRefused) {
  for (const char* head : {"", "\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/2\r\n\r\n",
                           "GET  HTTP/1.1\r\n\r\n", "GET metrics HTTP/1.1\r\n\r\n",
                           "GET /a b HTTP/1.1\r\n\r\n", "\x16\x03\x01\r\n\r\n"}) {
    EXPECT_EQ(ParseRequest(head).refused, 400) << head;
  }
  EXPECT_EQ(ParseRequest("POST / HTTP/1.1\r\n\r\n").refused, 405);
}

TEST(HttpPage, AnAnswerStatesItsLengthAndEndsTheConnection) {
  EXPECT_EQ(AnswerOf({200, "abc", "text/x"}, false),
            "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 3\r\n"
            "Connection: close\r\n\r\nabc");
  const std::string head = AnswerOf({404, "abc"}, true);
  EXPECT_TRUE(head.ends_with("Content-Length: 3\r\nConnection: close\r\n\r\n")) << head;
  EXPECT_NE(AnswerOf({405, ""}, false).find("Allow: GET, HEAD\r\n"), std::string::npos);
}

}  // namespace
}  // namespace troupe

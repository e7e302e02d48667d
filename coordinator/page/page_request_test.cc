#include "coordinator/page/page_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <string>
#include <utility>
#include <vector>

namespace troupe {
namespace {

using PageKind = PageRoute::Kind;

StatusOr<PageRoute> RouteTo(const std::string& path, const std::string& query = "") {
  return RouteOf({.path = path, .query = query});
}

std::string BasicHeader(const std::string& text) {
  std::string encoded(4 * (text.size() / 3 + 1) + 1, '\0');
  const int bytes = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()));
  encoded.resize(static_cast<size_t>(bytes));
  return "Basic " + encoded;
}

TEST(PageRequest, PathsLeadToPages) {
  const std::vector<std::pair<std::pair<std::string, std::string>, PageRoute>> routes = {
      {{"/", ""}, {.kind = PageKind::kCluster}},
      {{"/", "state=running&namespace=lab"},
       {.kind = PageKind::kCluster, .state = "running", .in_namespace = "lab"}},
      {{"/", "&state="}, {.kind = PageKind::kCluster}},
      {{"/style.css", ""}, {.kind = PageKind::kStyle}},
      {{"/page.js", ""}, {.kind = PageKind::kScript}},
      {{"/icon.svg", ""}, {.kind = PageKind::kIcon}},
      {{"/jobs/a", ""}, {.kind = PageKind::kJob, .job = "a"}},
      {{"/jobs/lab.run-1", ""}, {.kind = PageKind::kJob, .job = "lab.run-1"}},
      {{"/jobs/l%61b.a", ""}, {.kind = PageKind::kJob, .job = "lab.a"}},
      {{"/jobs/a/logs", ""}, {.kind = PageKind::kLogs, .job = "a"}},
      {{"/jobs/a/logs", "rank=3"}, {.kind = PageKind::kLogs, .job = "a", .rank = 3}},
      {{"/jobs/a/", ""}, {.kind = PageKind::kJob, .job = "a"}},
      {{"/jobs/a/logs/", "rank=3"}, {.kind = PageKind::kLogs, .job = "a", .rank = 3}}};
  for (const auto& [target, expected] : routes) {
    const auto route = RouteTo(target.first, target.second);
    ASSERT_TRUE(route.ok()) << target.first << ": " << route.status();
    EXPECT_EQ(*route, expected) << target.first << "?" << target.second;
  }
}

TEST(PageRequest, OtherPathsLeadNowhere) {
  for (const std::string path : {"",
                                 "*",
                                 "//",
                                 "/index.html",
                                 "/jobs",
                                 "/jobs/",
                                 "/jobs//logs",
                                 "/jobs//",
                                 "/jobs/a//",
                                 "/jobs/a/log",
                                 "/jobs/a/logs//",
                                 "/jobs/a/log/",
                                 "/jobs/../audit.log",
                                 "/jobs/%2e%2e%2faudit.log",
                                 "/%2e%2e/etc/passwd",
                                 "/jobs/a%2F..%2Fb",
                                 "/jobs/%3Cscript%3E",
                                 "/jobs/A",
                                 "/jobs/a.b.c",
                                 "/jobs/a%00",
                                 "/%zz",
                                 "/jobs/a%"}) {
    EXPECT_EQ(RouteTo(path).status().code(), StatusCode::kNotFound) << path;
  }
  EXPECT_EQ(RouteTo("/jobs/" + std::string(65, 'a')).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(RouteTo("/jobs/" + std::string(64, 'a')).ok());
}

TEST(PageRequest, AQueryThatCannotBeReadIsRefused) {
  for (const std::string query : {"state=%zz", "state=a&state=b", "state=%ff", "namespace=%",
                                  "state=a&%73tate=b", "state=a&other=%zz"})
    EXPECT_EQ(RouteTo("/", query).status().code(), StatusCode::kInvalidArgument) << query;
  for (const std::string query :
       {"rank=x", "rank=-1", "rank=1x", "rank=99999999999", "rank=1&rank=2"}) {
    EXPECT_EQ(RouteTo("/jobs/a/logs", query).status().code(), StatusCode::kInvalidArgument)
        << query;
  }
}

TEST(PageRequest, AKeyThatThePageDoesNotHaveIsRefused) {
  const std::pair<std::string, std::string> targets[] = {
      {"/", "states=RUNNING"},     {"/", "state=RUNNING&rank=1"},
      {"/", "State=RUNNING"},      {"/", "=RUNNING"},
      {"/jobs/a", "rank=1"},       {"/jobs/a/logs", "ranks=3"},
      {"/jobs/a/logs", "state=a"}, {"/page.js", "v=1"}};
  for (const auto& [path, query] : targets) {
    EXPECT_EQ(RouteTo(path, query).status().code(), StatusCode::kInvalidArgument)
        << path << "?" << query;
  }
  const auto encoded = RouteTo("/", "%73tate=RUNNING");
  ASSERT_TRUE(encoded.ok()) << encoded.status();
  EXPECT_EQ(encoded->state, "RUNNING");
}

TEST(PageRequest, OtherSitesMayOnlyLinkToThePage) {
  const auto is_refused = [](const std::string& site, const std::string& mode,
                             const std::string& dest) {
    return IsAskedByOtherSite({.fetch_site = site, .fetch_mode = mode, .fetch_dest = dest});
  };
  EXPECT_FALSE(IsAskedByOtherSite({}));
  for (const std::string site : {"same-origin", "none"}) {
    EXPECT_FALSE(is_refused(site, "cors", "empty")) << site;
    EXPECT_FALSE(is_refused(site, "navigate", "document")) << site;
  }
  for (const std::string site : {"cross-site", "same-site", "unheard-of"}) {
    EXPECT_TRUE(is_refused(site, "no-cors", "image")) << site;
    EXPECT_TRUE(is_refused(site, "cors", "empty")) << site;
    EXPECT_TRUE(is_refused(site, "navigate", "iframe")) << site;
    EXPECT_TRUE(is_refused(site, "no-cors", "document")) << site;
    EXPECT_TRUE(is_refused(site, "", "")) << site;
    EXPECT_FALSE(is_refused(site, "navigate", "document")) << site;
  }
}

TEST(PageRequest, OnlyAddressesAndLocalhostAreSafeNames) {
  for (const char* host : {"127.0.0.1", "127.0.0.1:8080", "10.0.0.7:1", "localhost", "LocalHost:80",
                           "[::1]", "[::1]:8080", "[fe80::1]:1"}) {
    EXPECT_TRUE(IsAddressHost(host)) << host;
  }
  for (const char* host :
       {"", ":80", "attacker.example", "attacker.example:80", "localhost.attacker.example",
        "127.0.0.1.attacker.example", "1", "127.1", "localhost:", "localhost:x", "localhost:123456",
        "[::1", "::1", "[attacker]:80", "[::1]x", "127.0.0.1:80:80", "localhost:80@attacker"}) {
    EXPECT_FALSE(IsAddressHost(host)) << host;
  }
}

TEST(PageRequest, ACertificateOrAPasswordNamesTheViewer) {
  const std::string password = BasicHeader("any:troupe~lab~1~2");
  const auto token = CredentialsOf({.authorization = password});
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->token, "troupe~lab~1~2");
  EXPECT_EQ(token->certificate, "");
  const auto both = CredentialsOf({.authorization = password, .certificate = "PEM"});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->certificate, "PEM");
  EXPECT_EQ(both->token, "");
  for (const std::string& authorization :
       {std::string(), std::string("Bearer troupe~lab~1~2"), std::string("Basic !"),
        BasicHeader("any:"), BasicHeader("any")}) {
    EXPECT_EQ(CredentialsOf({.authorization = authorization}).status().code(),
              StatusCode::kUnauthenticated)
        << authorization;
  }
}

}  // namespace
}  // namespace troupe

#include "coordinator/page/page_request.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/http/basic_credentials.h"
#include "base/http/url_text.h"
#include "plan/job/job_name.h"

namespace troupe {
namespace {

// The values of Sec-Fetch-Site of requests that no other site makes.
constexpr std::string_view kOwnSites[] = {"same-origin", "none"};

constexpr std::string_view kJobsPath = "/jobs/";
constexpr std::string_view kLogsPath = "/logs";

// Returns the value of a key and removes it; empty if there is none.
std::string TakeValue(QueryPairs* query, const char* key) {
  const auto node = query->extract(key);
  return node.empty() ? "" : node.mapped();
}

StatusOr<std::optional<int>> TakeRank(QueryPairs* query) {
  const std::string text = TakeValue(query, "rank");
  if (text.empty()) return std::optional<int>();
  int rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || end != text.data() + text.size() || rank < 0)
    return InvalidArgument("rank is \"{}\", which is not the number of a rank", text);
  return std::optional(rank);
}

StatusOr<PageRoute> RouteOfJob(std::string_view rest, QueryPairs* query) {
  PageRoute route{.kind = PageRoute::Kind::kJob};
  // The links of a page begin with '/', so that they lead to the same pages from either address.
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.ends_with(kLogsPath)) {
    rest.remove_suffix(kLogsPath.size());
    route.kind = PageRoute::Kind::kLogs;
    TROUPE_ASSIGN_OR_RETURN(route.rank, TakeRank(query));
  }
  if (!IsJobId(rest)) return NotFound("this is the address of no job");
  route.job = rest;
  return route;
}

// Removes the keys that the page has from `query`.
StatusOr<PageRoute> RouteOfPath(std::string_view path, QueryPairs* query) {
  if (path == "/style.css") return PageRoute{.kind = PageRoute::Kind::kStyle};
  if (path == "/page.js") return PageRoute{.kind = PageRoute::Kind::kScript};
  if (path == "/icon.svg") return PageRoute{.kind = PageRoute::Kind::kIcon};
  if (path.starts_with(kJobsPath)) return RouteOfJob(path.substr(kJobsPath.size()), query);
  if (path != "/") return NotFound("there is no such page");
  return PageRoute{.kind = PageRoute::Kind::kCluster,
                   .state = TakeValue(query, "state"),
                   .in_namespace = TakeValue(query, "namespace")};
}

// Returns whether `text` is a decimal port, or absent.
bool IsPortOrNothing(std::string_view text) {
  if (text.empty()) return true;
  constexpr size_t kMostDigits = 5;
  text.remove_prefix(1);  // the colon
  return !text.empty() && text.size() <= kMostDigits &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool IsAddress(int family, std::string_view text) {
  in6_addr address{};
  return inet_pton(family, std::string(text).c_str(), &address) == 1;
}

}  // namespace

StatusOr<PageRoute> RouteOf(const HttpRequest& request) {
  const std::optional<std::string> path = DecodePath(request.path);
  if (!path) return NotFound("the address cannot be read");
  std::optional<QueryPairs> query = DecodeQuery(request.query);
  if (!query) return InvalidArgument("the text after '?' cannot be read, or has a key twice");
  TROUPE_ASSIGN_OR_RETURN(PageRoute route, RouteOfPath(*path, &*query));
  if (!query->empty()) return InvalidArgument("the page has no key \"{}\"", query->begin()->first);
  return route;
}

bool IsAskedByOtherSite(const HttpRequest& request) {
  const std::string& site = request.fetch_site;
  if (site.empty() || std::ranges::count(kOwnSites, site) > 0) return false;
  return request.fetch_mode != "navigate" || request.fetch_dest != "document";
}

bool IsAddressHost(std::string_view host) {
  if (host.starts_with('[')) {
    const size_t close = host.find(']');
    return close != std::string_view::npos && IsAddress(AF_INET6, host.substr(1, close - 1)) &&
           IsPortOrNothing(host.substr(close + 1));
  }
  const size_t colon = std::min(host.find(':'), host.size());
  const std::string_view name = host.substr(0, colon);
  const bool is_local =
      std::ranges::equal(name, std::string_view("localhost"), {},
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return (is_local || IsAddress(AF_INET, name)) && IsPortOrNothing(host.substr(colon));
}

StatusOr<ViewerCredentials> CredentialsOf(const HttpRequest& request) {
  if (!request.certificate.empty()) return ViewerCredentials{.certificate = request.certificate};
  if (request.authorization.empty()) {
    return Unauthenticated(
        "this page requires a certificate of this cluster in the browser, or a token as the "
        "password, with any user name");
  }
  std::optional<BasicCredentials> basic = ParseBasic(request.authorization);
  if (!basic || basic->password.empty())
    return Unauthenticated("the header Authorization has no password of HTTP Basic");
  return ViewerCredentials{.token = std::move(basic->password)};
}

}  // namespace troupe

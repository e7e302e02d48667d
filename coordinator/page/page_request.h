// Decides which page a request asks for, and who sends it. Pure.
#ifndef TROUPE_COORDINATOR_PAGE_PAGE_REQUEST_H_
#define TROUPE_COORDINATOR_PAGE_PAGE_REQUEST_H_

#include <optional>
#include <string>
#include <string_view>

#include "base/http/http_page.h"
#include "base/status.h"

namespace troupe {

struct PageRoute {
  enum class Kind { kCluster, kJob, kLogs, kStyle, kScript, kIcon };
  Kind kind = Kind::kCluster;
  std::string job;           // kJob and kLogs: its id
  std::optional<int> rank;   // kLogs; absent: all ranks
  std::string state;         // kCluster: only jobs in it; empty: any
  std::string in_namespace;  // kCluster: only jobs of it; empty: any

  bool operator==(const PageRoute&) const = default;
};

// NOT_FOUND if there is no such page, INVALID_ARGUMENT if its query cannot be read or has a key
// that the page does not have.
StatusOr<PageRoute> RouteOf(const HttpRequest& request);

// Whether the header Host has an IP address or localhost, with or without a port. A page of another
// site whose name leads to this host, for a moment or always, has that name there.
bool IsAddressHost(std::string_view host);

// Whether a page of another site has the browser ask, with its user's credentials, for anything but
// a page that the user then sees as the whole document, as after a click on a link. A client that
// does not state why it asks is no browser of today.
bool IsAskedByOtherSite(const HttpRequest& request);

// Who a viewer claims to be. One of the texts is empty.
struct ViewerCredentials {
  std::string certificate;  // PEM
  std::string token;        // the password of HTTP Basic
};

// Returns the client's certificate, or without one the token. UNAUTHENTICATED if there is neither,
// or if the header Authorization is another one than that of HTTP Basic.
StatusOr<ViewerCredentials> CredentialsOf(const HttpRequest& request);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PAGE_PAGE_REQUEST_H_

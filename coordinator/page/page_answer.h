// The answers of the page: their headers, and those to what cannot be shown. Pure.
#ifndef TROUPE_COORDINATOR_PAGE_PAGE_ANSWER_H_
#define TROUPE_COORDINATOR_PAGE_PAGE_ANSWER_H_

#include <string>

#include "base/http/http_page.h"
#include "base/status.h"

namespace troupe {

enum class PageCaching {
  kNever,    // it shows what is so now, to this viewer
  kBriefly,  // it is the same for everybody until the coordinator is replaced
};

// Returns the page with the headers of every answer: nothing may be loaded from elsewhere, framed
// or read by other sites. A page of code 200 gets an ETag; if the request has it already, the
// answer is 304 without a body.
HttpPage Finished(HttpPage page, const HttpRequest& request, PageCaching caching);

HttpPage HtmlPage(std::string html);

// Returns the page about an error that leaves nothing to show, with the code of HTTP for it.
// REQUIRES: `error` is not OK.
HttpPage PageOfError(const Status& error);

// As PageOfError, and the browser asks its user for a password.
HttpPage PasswordPage(const Status& error);

// The answer to a request that cannot be served because of `error`. The user of a browser without a
// certificate is asked for a password if the viewer is not known; with a certificate, a password
// would change nothing.
HttpPage PageOfError(const Status& error, const HttpRequest& request);

// The answer to a request that IsAskedByOtherSite refuses.
HttpPage OtherSitePage();

// The answer to a request with a header Host that IsAddressHost refuses.
HttpPage WrongHostPage();

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PAGE_PAGE_ANSWER_H_

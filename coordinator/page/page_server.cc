#include "coordinator/page/page_server.h"

#include <utility>

namespace troupe {
namespace {

// A page may wait for the engine and for workers.
constexpr int kPageThreads = 4;

}  // namespace

StatusOr<std::unique_ptr<PageServer>> PageServer::Start(const PageServerOptions& options) {
  std::unique_ptr<PageServer> page(new PageServer());
  PageMaker::Options maker = options.maker;
  maker.has_tls = options.tls.has_value();
  page->maker_ = std::make_unique<PageMaker>(maker);
  auto server = HttpServer::Start(
      {.listen = options.listen,
       .tls = options.tls,
       .client_certificate = ClientCertificate::kOptional,
       .handlers = {.pages = [raw = page->maker_.get()](
                                 const HttpRequest& request) { return raw->Answer(request); }},
       .threads = kPageThreads});
  if (!server.ok()) return Annotate(server.status(), "page");
  page->server_ = *std::move(server);
  page->url_ =
      fmt::format("{}://{}:{}/", options.tls ? "https" : "http",
                  options.listen.substr(0, options.listen.rfind(':')), page->server_->port());
  return page;
}

PageServer::~PageServer() {
  maker_->EndCalls();
  server_.reset();
}

}  // namespace troupe

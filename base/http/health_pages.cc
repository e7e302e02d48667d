#include "base/http/health_pages.h"

#include <utility>

namespace troupe {

HttpPages HealthPages(std::function<bool()> lives, std::function<bool()> is_ready) {
  return [lives = std::move(lives), is_ready = std::move(is_ready)](const HttpRequest& request) {
    const std::string& path = request.path;
    if (path != "/healthz" && path != "/readyz") return NotFoundPage();
    const bool good = path == "/healthz" ? lives() : is_ready();
    return good ? HttpPage{200, "ok\n"} : HttpPage{503, "not ok\n"};
  };
}

}  // namespace troupe

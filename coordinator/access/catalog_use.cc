#include "coordinator/access/catalog_use.h"

namespace troupe {

StatusOr<CatalogUse> ReadCatalogUse(const Store& store) {
  CatalogUse use;
  TROUPE_RETURN_IF_ERROR(store.Scan("", "", [&](std::string_view, std::string_view) {
    use.is_used = true;
    return false;
  }));
  TROUPE_RETURN_IF_ERROR(ScanPrefix(store, "job/", [&](std::string_view, std::string_view) {
    use.has_jobs = true;
    return false;
  }));
  return use;
}

}  // namespace troupe

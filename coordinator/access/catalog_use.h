// Finds out whether a catalog was used before, without reading all of it.
#ifndef TROUPE_COORDINATOR_ACCESS_CATALOG_USE_H_
#define TROUPE_COORDINATOR_ACCESS_CATALOG_USE_H_

#include "base/status.h"
#include "base/store/store.h"

namespace troupe {

struct CatalogUse {
  bool is_used = false;    // an earlier coordinator has written to it
  bool has_calls = false;  // it has jobs, tokens, drains or other rows that only calls lead to
};

StatusOr<CatalogUse> ReadCatalogUse(const Store& store);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_CATALOG_USE_H_

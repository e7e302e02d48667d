#include "coordinator/access/catalog_use.h"

namespace troupe {

StatusOr<CatalogUse> ReadCatalogUse(const Store& store) {
  CatalogUse use;
  TROUPE_RETURN_IF_ERROR(store.Scan("", "", [&](std::string_view key, std::string_view) {
    use.is_used = true;
    // A coordinator writes this row at its start; all others belong to what a call began.
    use.has_calls = key != "leader_epoch";
    return !use.has_calls;
  }));
  return use;
}

}  // namespace troupe

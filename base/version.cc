#include "base/version.h"

namespace troupe {

const char* const kVersion = TROUPE_VERSION;

}  // namespace troupe

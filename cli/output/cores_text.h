// Formats the cores of a rank. Pure.
#ifndef TROUPE_CLI_OUTPUT_CORES_TEXT_H_
#define TROUPE_CLI_OUTPUT_CORES_TEXT_H_

#include <string>

#include "troupe/v1/worker.pb.h"

namespace troupe {

// Returns "0-3,8", or "0-3,8 (shared by 2 ranks)"; empty if the rank is not bound to cores.
std::string CoresText(const v1::CoreSet& set);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_CORES_TEXT_H_

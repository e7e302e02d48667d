// The result of `data prepare` as text for people. Pure.
#ifndef TROUPE_CLI_OUTPUT_PREPARE_TEXT_H_
#define TROUPE_CLI_OUTPUT_PREPARE_TEXT_H_

#include <string>

#include "cli/output/text_style.h"
#include "data/prepare.h"

namespace troupe {

// Returns the rate of the command, also for a time of 0.
double TokensPerSecond(const PrepareResult& result, double seconds);

// Returns what was read and made in `seconds`, what a job must know of the tokens, and the files, a
// line for each, which is whole.
std::string PrepareText(const PrepareResult& result, double seconds, const TextStyle& style);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_PREPARE_TEXT_H_

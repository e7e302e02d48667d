// The tokens of users, and the certificates that a coordinator refuses, as tables. Pure.
#ifndef TROUPE_CLI_OUTPUT_ACCESS_TABLE_H_
#define TROUPE_CLI_OUTPUT_ACCESS_TABLE_H_

#include <string>
#include <vector>

#include "cli/output/text_style.h"
#include "troupe/v1/access.pb.h"

namespace troupe {

// Returns a table with a line for each token, which has the end of its id. Where the table is too
// wide, names are shortened, the times of revocations are below their lines, and then the times of
// creation are left out.
std::string TokenTableText(const std::vector<v1::UserToken>& tokens, const TextStyle& style);

// Returns a table with a line for each revocation. Where the table is too wide, who revoked, and
// then the time, is below the line.
std::string RevocationTableText(const std::vector<v1::Revocation>& revocations,
                                const TextStyle& style);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_ACCESS_TABLE_H_

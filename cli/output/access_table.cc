#include "cli/output/access_table.h"

#include <algorithm>

#include "base/clock.h"
#include "cli/output/table.h"

namespace troupe {
namespace {

constexpr size_t kShownIdDigits = 4;
constexpr size_t kLeastNameColumnsOfAccess = 8;
// A serial number stays whole, so that it can be copied.
constexpr size_t kLeastCertificateColumns = 47;

}  // namespace

std::string TokenTableText(const std::vector<v1::UserToken>& tokens, const TextStyle& style) {
  using Narrow = Table::Narrow;
  Table table({{"ID"},
               {.title = "NAME", .narrow = Narrow::kShortened, .least = kLeastNameColumnsOfAccess},
               {"ROLE"},
               {.title = "CREATED", .narrow = Narrow::kLeftOut, .importance = 2},
               {"EXPIRES"},
               {.title = "REVOKED", .narrow = Narrow::kBelow, .importance = 1}});
  for (const v1::UserToken& token : tokens) {
    const std::string& id = token.id();
    table.AddRow({{"…" + id.substr(id.size() - std::min(id.size(), kShownIdDigits))},
                  {token.name()},
                  {token.role()},
                  {UtcText(token.created())},
                  {UtcText(token.expires())},
                  {token.revoked() == 0 ? "" : UtcText(token.revoked())}});
  }
  return table.Text(style);
}

std::string RevocationTableText(const std::vector<v1::Revocation>& revocations,
                                const TextStyle& style) {
  using Narrow = Table::Narrow;
  Table table(
      {{.title = "CERTIFICATE", .narrow = Narrow::kShortened, .least = kLeastCertificateColumns},
       {.title = "REVOKED", .narrow = Narrow::kBelow, .importance = 2},
       {.title = "REVOKED BY", .narrow = Narrow::kBelow, .importance = 1}});
  for (const v1::Revocation& revocation : revocations) {
    const bool has_serial = revocation.which_case() == v1::Revocation::kSerial;
    table.AddRow({{has_serial ? "serial " + revocation.serial() : revocation.identity()},
                  {UtcText(revocation.revoked())},
                  {revocation.revoked_by()}});
  }
  return table.Text(style);
}

}  // namespace troupe

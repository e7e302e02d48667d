#include "cli/issued_certificate.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/program/program.h"
#include "base/security/identity.h"
#include "report/text/json_text.h"

namespace troupe {

void PrintIssued(const CommandLine& line, const CertificateFacts& facts,
                 const std::string& directory) {
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump({{"identity", ToUri(facts.identity)},
                              {"serial", facts.serial},
                              {"not_before", facts.not_before},
                              {"not_after", facts.not_after},
                              {"directory", directory}}));
  } else {
    PrintOutput("{} in {}, valid until {}\n", ToUri(facts.identity), directory,
                UtcText(facts.not_after));
  }
}

}  // namespace troupe

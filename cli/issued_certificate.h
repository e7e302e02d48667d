// The output of `troupe certs` for a certificate that it has got.
#ifndef TROUPE_CLI_ISSUED_CERTIFICATE_H_
#define TROUPE_CLI_ISSUED_CERTIFICATE_H_

#include <string>

#include "base/security/certificate.h"
#include "cli/command_line.h"

namespace troupe {

// Prints the certificate, which is now in the TLS directory `directory`, as text or as JSON.
void PrintIssued(const CommandLine& line, const CertificateFacts& facts,
                 const std::string& directory);

}  // namespace troupe

#endif  // TROUPE_CLI_ISSUED_CERTIFICATE_H_

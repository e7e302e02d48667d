// The lines of certificates that renew each other, which their serial numbers show.
//
// A certificate that was not made by a renewal begins a line, which is a hash of its serial number.
// The serial number of one that was made by a renewal contains the line of the former certificate.
// So all certificates that descend from one by renewals are of its line, and nothing needs to be
// stored about them. Thread-safe.
#ifndef TROUPE_BASE_SECURITY_CERTIFICATE_LINE_H_
#define TROUPE_BASE_SECURITY_CERTIFICATE_LINE_H_

#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

// Returns the line of the certificate with this serial number, in lower-case hexadecimal digits
// with or without leading zeros.
std::string LineOf(std::string_view serial);

// Returns a new serial number, of 20 bytes in lower-case hexadecimal digits, for a certificate that
// renews the one with the serial number `former`. INTERNAL if the system has no random bits.
StatusOr<std::string> SerialOfRenewal(std::string_view former);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_CERTIFICATE_LINE_H_

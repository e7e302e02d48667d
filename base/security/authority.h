// A small certificate authority for one cluster, with keys on the curve P-256. Thread-safe; the
// time is an argument.
#ifndef TROUPE_BASE_SECURITY_AUTHORITY_H_
#define TROUPE_BASE_SECURITY_AUTHORITY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/security/identity.h"
#include "base/status.h"

namespace troupe {

// Certificates begin to be valid this many seconds before they are made, for hosts whose clocks are
// late.
inline constexpr int64_t kMostClockSkew = 300;

inline constexpr int64_t kSecondsOfDay = int64_t{24} * 60 * 60;

// A certificate and its private key, in PEM.
struct CertifiedKey {
  std::string certificate;
  std::string key;
};

// The contents of a certificate. Its holder may be a server and a client.
struct CertificateRequest {
  std::string common_name;         // at most 64 characters
  std::vector<std::string> uris;   // alternative names
  std::vector<std::string> hosts;  // alternative names: IP addresses and DNS names
  int64_t not_before = 0;          // Unix time in seconds
  int64_t not_after = 0;           // Unix time in seconds
  std::string serial = {};         // hexadecimal digits of at most 20 bytes; empty: a random number
};

// INVALID_ARGUMENT unless `host` is an IP address or a DNS name.
Status CheckHost(const std::string& host);

// Makes the key and certificate of an authority for 10 years from `now_seconds`.
// INVALID_ARGUMENT unless `cluster` passes CheckIdentityName.
StatusOr<CertifiedKey> MakeAuthority(const std::string& cluster, int64_t now_seconds);

// Returns the cluster of an authority that MakeAuthority made. INVALID_ARGUMENT if it is another.
StatusOr<std::string> ClusterOf(const CertifiedKey& authority);

// Returns the Unix time in seconds at which the authority's certificate ends. INVALID_ARGUMENT if
// it is not one of an authority, or if the key does not belong to it.
StatusOr<int64_t> CheckAuthority(const CertifiedKey& authority);

// Makes a key and a certificate for it, signed by the authority. INVALID_ARGUMENT if the authority
// is not one, if the certificate would be valid beyond it, if a host is no address and no name, or
// if `request.serial` is no positive number.
StatusOr<CertifiedKey> SignCertificate(const CertifiedKey& authority,
                                       const CertificateRequest& request);

// Returns a certificate, in PEM, with these contents for the key of a signing request
// (base/security/signing_request.h), of which nothing else counts. INVALID_ARGUMENT as
// SignCertificate and RequestedKey.
StatusOr<std::string> SignRequestedKey(const CertifiedKey& authority, std::string_view request,
                                       const CertificateRequest& contents);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_AUTHORITY_H_

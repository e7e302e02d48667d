#include "coordinator/access/revocations.h"

#include <algorithm>

#include "base/clock.h"
#include "base/security/certificate_line.h"

namespace troupe {
namespace {

constexpr size_t kMostSerialDigits = 40;  // RFC 5280: 20 bytes
constexpr std::string_view kOnlyClientsCheck =
    "clients check a coordinator's certificate, and they do not ask for revocations; replace the "
    "authority instead";

// Returns the number without leading zeros, in lower case. Tools print it also with colons.
StatusOr<std::string> SerialIn(std::string_view text) {
  std::string digits;
  bool is_hexadecimal = true;
  for (const char c : text) {
    if (c == ':') continue;
    const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    is_hexadecimal &= (lower >= '0' && lower <= '9') || (lower >= 'a' && lower <= 'f');
    if (lower != '0' || !digits.empty()) digits += lower;
  }
  if (!is_hexadecimal || digits.empty() || digits.size() > kMostSerialDigits) {
    return InvalidArgument(
        "serial is \"{}\", not the serial number of a certificate: 1 to {} hexadecimal digits",
        text.substr(0, 2 * kMostSerialDigits), kMostSerialDigits);
  }
  return digits;
}

Status RevokedCertificate(const CertificateFacts& certificate, const v1::Revocation& revocation,
                          std::string_view which, std::string_view relation) {
  return Unauthenticated(
      "the certificate of this connection is not accepted: {} of {} was revoked at {}{}", which,
      ToUri(certificate.identity), UtcText(revocation.revoked()), relation);
}

}  // namespace

Status CheckIsNotOwn(const v1::RevokeCertificateRequest& request, const CertificateFacts& own) {
  if (request.which_case() != v1::RevokeCertificateRequest::kSerial) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::string revoked, SerialIn(request.serial()));
  if (revoked != SerialIn(own.serial).value_or("")) return OkStatus();
  return InvalidArgument("serial is {}, that of the certificate of this coordinator, {}: {}",
                         revoked, ToUri(own.identity), kOnlyClientsCheck);
}

StatusOr<v1::Revocation> Revocations::RevocationOf(
    const v1::RevokeCertificateRequest& request) const {
  v1::Revocation revocation;
  switch (request.which_case()) {
    case v1::RevokeCertificateRequest::kSerial: {
      TROUPE_ASSIGN_OR_RETURN(*revocation.mutable_serial(), SerialIn(request.serial()));
      return revocation;
    }
    case v1::RevokeCertificateRequest::kIdentity: {
      TROUPE_ASSIGN_OR_RETURN(const Identity identity, ParseIdentity(request.identity()));
      if (identity.cluster != cluster_) {
        return InvalidArgument("identity is {}, one of another cluster than {}", request.identity(),
                               cluster_);
      }
      if (identity.role == Role::kCoordinator) {
        return InvalidArgument("identity is {}: {}", request.identity(), kOnlyClientsCheck);
      }
      revocation.set_identity(request.identity());
      return revocation;
    }
    case v1::RevokeCertificateRequest::WHICH_NOT_SET:
      break;
  }
  return InvalidArgument("neither serial nor identity is given");
}

StatusOr<v1::Revocation> Revocations::NewRevocation(const v1::RevokeCertificateRequest& request,
                                                    const std::string& by, int64_t now) const {
  TROUPE_ASSIGN_OR_RETURN(v1::Revocation revocation, RevocationOf(request));
  const bool has_serial = revocation.which_case() == v1::Revocation::kSerial;
  const auto& table = has_serial ? serials_ : identities_;
  const auto known = table.find(has_serial ? revocation.serial() : revocation.identity());
  const bool is_known = known != table.end();
  // A second revocation of an identity is for the certificates that were issued since.
  if (is_known && (has_serial || known->second.revoked() >= now)) return known->second;
  if (!is_known && serials_.size() + identities_.size() >= kMostRevocations)
    return ResourceExhausted("there are {} revocations, the most that are kept", kMostRevocations);
  revocation.set_revoked(now);
  revocation.set_revoked_by(by);
  return revocation;
}

void Revocations::Put(v1::Revocation revocation) {
  const bool has_serial = revocation.which_case() == v1::Revocation::kSerial;
  std::string key = has_serial ? revocation.serial() : revocation.identity();
  if (has_serial) lines_.try_emplace(LineOf(key), key);
  (has_serial ? serials_ : identities_).insert_or_assign(std::move(key), std::move(revocation));
}

Status Revocations::Check(const CertificateFacts& certificate) const {
  if (!lines_.empty()) {
    const auto line = lines_.find(LineOf(certificate.serial));
    if (line != lines_.end()) {
      const std::string& revoked = line->second;
      const bool is_itself = SerialIn(certificate.serial).value_or("") == revoked;
      return RevokedCertificate(
          certificate, serials_.at(revoked),
          fmt::format("the certificate {}", is_itself ? certificate.serial : revoked),
          is_itself ? "" : ", and this one is of one line of renewals with it");
    }
  }
  if (identities_.empty()) return OkStatus();
  const auto identity = identities_.find(ToUri(certificate.identity));
  if (identity == identities_.end() || certificate.not_before > identity->second.revoked())
    return OkStatus();
  return RevokedCertificate(
      certificate, identity->second, "every certificate",
      fmt::format(", and this one is valid from {}", UtcText(certificate.not_before)));
}

int64_t Revocations::WhenRevoked(const Identity& identity) const {
  const auto found = identities_.find(ToUri(identity));
  return found == identities_.end() ? 0 : found->second.revoked();
}

std::vector<v1::Revocation> Revocations::List() const {
  std::vector<v1::Revocation> revocations;
  for (const auto& [serial, revocation] : serials_) revocations.push_back(revocation);
  for (const auto& [uri, revocation] : identities_) revocations.push_back(revocation);
  std::ranges::stable_sort(revocations, {},
                           [](const v1::Revocation& revocation) { return revocation.revoked(); });
  return revocations;
}

}  // namespace troupe

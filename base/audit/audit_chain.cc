#include "base/audit/audit_chain.h"

#include <openssl/evp.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace troupe {
namespace {

// The longest texts of a record, in bytes. One byte takes at most six in JSON.
constexpr size_t kMostTargetBytes = 512;
constexpr size_t kMostReasonBytes = 1024;

constexpr std::string_view kHashBegin = ",\"hash\":\"";
constexpr std::string_view kHashEnd = "\"}";
constexpr size_t kHashDigits = 64;
constexpr size_t kSuffixBytes = kHashBegin.size() + kHashDigits + kHashEnd.size();

std::string HexSha256(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  unsigned length = 0;
  TROUPE_CHECK(
      EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr) == 1 &&
          length == digest.size(),
      "SHA-256 gave {} bytes", length);
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::string_view OutcomeName(AuditOutcome outcome) {
  switch (outcome) {
    case AuditOutcome::kAllowed:
      return "ALLOWED";
    case AuditOutcome::kDenied:
      return "DENIED";
    case AuditOutcome::kRepaired:
      return "REPAIRED";
  }
  return "";
}

std::string FirstBytes(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  return text.substr(0, most) + fmt::format(" … ({} more bytes)", text.size() - most);
}

struct ParsedLine {
  AuditHead head;
  std::string previous;
};

StatusOr<ParsedLine> ParseAuditLine(std::string_view line) {
  if (line.size() <= kSuffixBytes || !line.ends_with(kHashEnd) ||
      line.substr(line.size() - kSuffixBytes, kHashBegin.size()) != kHashBegin) {
    return DataLoss("the line does not end with its hash");
  }
  const std::string_view text = line.substr(0, line.size() - kSuffixBytes);
  ParsedLine parsed;
  parsed.head.hash = line.substr(text.size() + kHashBegin.size(), kHashDigits);
  if (const std::string hash = HexSha256(text); hash != parsed.head.hash)
    return DataLoss("the text of the line has the hash {}, not {}", hash, parsed.head.hash);
  // nlohmann throws on a wrong type or an absent key.
  try {
    const nlohmann::json json = nlohmann::json::parse(line);
    parsed.head.sequence = json.at("sequence").get<int64_t>();
    parsed.previous = json.at("previous").get<std::string>();
  } catch (const std::exception& error) {
    return DataLoss("the line is no record: {}", error.what());
  }
  if (parsed.head.sequence < 1)
    return DataLoss("the record has the sequence number {}", parsed.head.sequence);
  return parsed;
}

}  // namespace

std::string AuditLine(const AuditRecord& record, AuditHead* head) {
  const nlohmann::ordered_json json = {{"sequence", head->sequence + 1},
                                       {"wall_time_ns", record.wall_time_ns},
                                       {"identity", FirstBytes(record.identity, kMostTargetBytes)},
                                       {"rpc", FirstBytes(record.rpc, kMostTargetBytes)},
                                       {"outcome", OutcomeName(record.outcome)},
                                       {"target", FirstBytes(record.target, kMostTargetBytes)},
                                       {"reason", FirstBytes(record.reason, kMostReasonBytes)},
                                       {"previous", head->hash}};
  // Bytes that are not UTF-8 are replaced, and all but ASCII is escaped: a terminal that shows the
  // line obeys nothing in it.
  std::string line = json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
  line.pop_back();  // the closing brace
  head->hash = HexSha256(line);
  ++head->sequence;
  line += kHashBegin;
  line += head->hash;
  line += kHashEnd;
  line += '\n';
  return line;
}

StatusOr<AuditHead> CheckAuditLine(std::string_view line) {
  TROUPE_ASSIGN_OR_RETURN(ParsedLine parsed, ParseAuditLine(line));
  return std::move(parsed.head);
}

StatusOr<AuditHead> HeadBefore(std::string_view line) {
  TROUPE_ASSIGN_OR_RETURN(ParsedLine parsed, ParseAuditLine(line));
  return AuditHead{parsed.head.sequence - 1, std::move(parsed.previous)};
}

Status FollowAuditLine(std::string_view line, AuditHead* head) {
  TROUPE_ASSIGN_OR_RETURN(ParsedLine parsed, ParseAuditLine(line));
  if (parsed.head.sequence != head->sequence + 1) {
    return DataLoss("the record has the sequence number {}, not {}", parsed.head.sequence,
                    head->sequence + 1);
  }
  if (parsed.previous != head->hash) {
    return DataLoss("record {} follows a record with the hash {}, not {}", parsed.head.sequence,
                    parsed.previous, head->hash);
  }
  *head = std::move(parsed.head);
  return OkStatus();
}

}  // namespace troupe

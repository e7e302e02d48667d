#include "coordinator/service/grpc_status.h"

#include <string>

#include "absl/strings/match.h"
#include "base/text/printable.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

// A status travels in HTTP/2 trailers, for which peers accept 8 KiB in all. Details grow by a third
// in base64.
constexpr size_t kMostMessageBytes = 3000;
constexpr size_t kMostDetailBytes = 1500;
constexpr size_t kMostRepeatedBytes = 500;  // at most, of the message within the details

constexpr char kTypeUrlPrefix[] = "type.googleapis.com/";

// Returns at most `most` bytes of `text`, in whole UTF-8 characters, and states how many were cut.
std::string Cut(const std::string& text, size_t most) {
  size_t encoded = 0, end = 0;
  for (; end < text.size(); ++end) {
    const auto byte = static_cast<unsigned char>(text[end]);
    encoded += byte >= 0x20 && byte < 0x7F && byte != '%' ? 1 : 3;
    if (encoded > most) break;
  }
  if (end == text.size()) return text;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + fmt::format(" … ({} more bytes)", text.size() - end);
}

// Removes the last violations of a BadRequest until it fits, and adds one that states how many were
// removed. Returns false if `detail` has another type.
bool FitBadRequest(google::protobuf::Any* detail) {
  google::rpc::BadRequest bad;
  if (!detail->UnpackTo(&bad)) return false;
  const int all = bad.field_violations_size();
  while (bad.field_violations_size() > 0 && bad.ByteSizeLong() > kMostDetailBytes) {
    bad.mutable_field_violations()->RemoveLast();
  }
  const int gone = all - bad.field_violations_size();
  auto* const rest = bad.add_field_violations();
  rest->set_field("…");
  rest->set_description(fmt::format("{} more violations", gone));
  detail->PackFrom(bad);
  return true;
}

}  // namespace

grpc::Status ToGrpcStatus(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  google::rpc::Status details;
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& value) {
    // Payloads of other types, such as a failure's cause, are for this process.
    if (!absl::StartsWith(type_url, kTypeUrlPrefix)) return;
    google::protobuf::Any* const detail = details.add_details();
    detail->set_type_url(std::string(type_url.data(), type_url.size()));
    detail->set_value(std::string(value));
    const bool fits = detail->value().size() <= kMostDetailBytes || FitBadRequest(detail);
    if (!fits) details.mutable_details()->RemoveLast();
  });
  const bool has_violations = !ViolationsOf(status).empty();
  const std::string message =
      Cut(has_violations ? PrintableLines(Message(status)) : PrintableLine(Message(status)),
          kMostMessageBytes);
  if (details.details().empty()) return grpc::Status(code, message);
  details.set_code(static_cast<int>(status.code()));
  details.set_message(Cut(message, kMostRepeatedBytes));
  return grpc::Status(code, message, details.SerializeAsString());
}

}  // namespace troupe

#include "coordinator/grpc_status.h"

#include <string>

#include "google/rpc/status.pb.h"

namespace troupe {

grpc::Status ToGrpcStatus(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  google::rpc::Status details;
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& value) {
    google::protobuf::Any* const detail = details.add_details();
    detail->set_type_url(std::string(type_url.data(), type_url.size()));
    detail->set_value(std::string(value));
  });
  const std::string message(Message(status));
  if (details.details().empty()) return grpc::Status(code, message);
  details.set_code(static_cast<int>(status.code()));
  details.set_message(message);
  return grpc::Status(code, message, details.SerializeAsString());
}

}  // namespace troupe

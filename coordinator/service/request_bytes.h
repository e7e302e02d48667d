// The largest request of each RPC but the sessions of workers.
#ifndef TROUPE_COORDINATOR_SERVICE_REQUEST_BYTES_H_
#define TROUPE_COORDINATOR_SERVICE_REQUEST_BYTES_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {

// Maximum size of a request that has the spec of a job, and of the first message of a session.
inline constexpr size_t kMaxRequestBytes = 4 << 20;
// Maximum size of any other request. These have names, paths, tokens and certificate requests.
inline constexpr size_t kMaxSmallRequestBytes = 64 << 10;

template <typename Request>
inline constexpr size_t kMostBytesOf = kMaxSmallRequestBytes;
template <>
inline constexpr size_t kMostBytesOf<v1::CreateJobRequest> = kMaxRequestBytes;
template <>
inline constexpr size_t kMostBytesOf<v1::ResumeJobRequest> = kMaxRequestBytes;
template <>
inline constexpr size_t kMostBytesOf<v1::PlanJobRequest> = kMaxRequestBytes;
template <>
inline constexpr size_t kMostBytesOf<v1::RebuildJobRequest> = kMaxRequestBytes;

inline Status CheckBytes(std::string_view name, size_t bytes, size_t most) {
  if (bytes <= most) return OkStatus();
  return ResourceExhausted("{}: the request has {} bytes, above the limit of {}", name, bytes,
                           most);
}

// RESOURCE_EXHAUSTED, with its name and both numbers, if the request is too large. Handlers
// call it after they have checked whether the caller may use the job, and before any other work is
// done for the request, because gRPC accepts what a session needs.
template <typename Request>
Status CheckRequestBytes(const Request& request) {
  return CheckBytes(Request::descriptor()->name(), request.ByteSizeLong(), kMostBytesOf<Request>);
}

// Parses the request of an RPC that strangers may call. One that is too large is refused before it
// is parsed, which would take many times its size in memory.
template <typename Request>
Status ParseRequest(const grpc::ByteBuffer& bytes, Request* request) {
  TROUPE_RETURN_IF_ERROR(
      CheckBytes(Request::descriptor()->name(), bytes.Length(), kMostBytesOf<Request>));
  grpc::ByteBuffer copy = bytes;  // shares the memory
  const grpc::Status parsed = grpc::SerializationTraits<Request>::Deserialize(&copy, request);
  if (parsed.ok()) return OkStatus();
  return InvalidArgument("{}: {}", Request::descriptor()->name(), parsed.error_message());
}

// Serialises the answer to such an RPC.
template <typename Response>
Status SerializeResponse(const Response& response, grpc::ByteBuffer* bytes) {
  bool owned = false;
  const grpc::Status serialized =
      grpc::SerializationTraits<Response>::Serialize(response, bytes, &owned);
  if (serialized.ok()) return OkStatus();
  return Internal("{}: {}", Response::descriptor()->name(), serialized.error_message());
}

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_REQUEST_BYTES_H_

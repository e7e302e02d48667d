#include "base/security/channel_arguments.h"

#include <grpc/impl/codegen/grpc_types.h>

namespace troupe {
namespace {

constexpr int kResolveIntervalMs = 500;
constexpr int kNameServerLimitMs = 5000;

}  // namespace

grpc::ChannelArguments CoordinatorChannelArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, kResolveIntervalMs);
  arguments.SetInt(GRPC_ARG_DNS_ARES_QUERY_TIMEOUT_MS, kNameServerLimitMs);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

}  // namespace troupe

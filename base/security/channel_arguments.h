// The gRPC settings that every connection to a coordinator shares.
#ifndef TROUPE_BASE_SECURITY_CHANNEL_ARGUMENTS_H_
#define TROUPE_BASE_SECURITY_CHANNEL_ARGUMENTS_H_

#include <grpcpp/support/channel_arguments.h>

namespace troupe {

// Returns arguments with which a channel finds a coordinator that has moved to another address
// within a second or two: a lost connection resolves the name again at most every 500 ms (gRPC's
// default: 30 s), and a question that a name server does not answer is given up after 5 s (120 s).
// A proxy from the environment is not used.
grpc::ChannelArguments CoordinatorChannelArguments();

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_CHANNEL_ARGUMENTS_H_

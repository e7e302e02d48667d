// The log records of gRPC and of Protocol Buffers in the log of this process.
#ifndef TROUPE_BASE_SECURITY_GRPC_LOG_H_
#define TROUPE_BASE_SECURITY_GRPC_LOG_H_

namespace troupe {

// From now on, gRPC's records go to this process's log, as far as GRPC_VERBOSITY lets them pass.
// Those of Protocol Buffers go there too.
//
// One place in the code of either gets three records a minute, with the number of those that were
// left out: a client with a certificate that has expired tries five times a second.
//
// One kind is dropped: "No match found for server name". gRPC's clients send the host that they
// dial as the server's name in the handshake, even an IP address, and its servers report an error
// if their certificate does not contain it. Here a server is known by its URI and not by its host
// (credentials.h), so every connection would leave such a record. Thread-safe.
void LogGrpcRecords();

// From now on, gRPC's records are dropped, unless GRPC_VERBOSITY is set. A command reports the
// errors of its calls by itself. Thread-safe.
void DropGrpcRecords();

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_GRPC_LOG_H_

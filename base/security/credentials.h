// Credentials of gRPC servers and channels from the files of a TLS directory. Both sides present
// their certificate and verify the peer's.
//
// The files are read again about once a second, without a restart: new connections use the new
// files, open ones live on. Files that fail CheckTlsContents or have another identity than before,
// such as a half-written one during rotation, are reported in the log and leave the former ones in
// use. Thread-safe.
#ifndef TROUPE_BASE_SECURITY_CREDENTIALS_H_
#define TROUPE_BASE_SECURITY_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "base/security/tls_files.h"

namespace troupe {

// A client without a certificate, or with one that no authority of ca.pem signed, is refused in the
// handshake. The server's code checks the client's identity: the properties "peer_uri" of each
// call's grpc::AuthContext (ParseSoleIdentity).
// REQUIRES: `files` is from CheckTlsDirectory.
std::shared_ptr<grpc::ServerCredentials> TlsServerCredentialsOf(const TlsFiles& files);

// A server is accepted if an authority of ca.pem signed its certificate and its identity is a
// coordinator of the cluster of `files.identity`; its host name does not count.
// REQUIRES: `files` is from CheckTlsDirectory.
std::shared_ptr<grpc::ChannelCredentials> TlsChannelCredentialsOf(const TlsFiles& files);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_CREDENTIALS_H_

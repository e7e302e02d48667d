// Credentials of gRPC servers and channels from the files of a TLS directory. Each side verifies
// the certificate of the other. A server has one; a client has one, a user's token, or neither.
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
#include <string>

#include "base/security/tls_files.h"

namespace troupe {

// A client with a certificate that no authority of ca.pem signed is refused in the handshake. A
// client without one gets a connection. The server's code must check the caller of each call: the
// properties "peer_uri" of its grpc::AuthContext (ParseSoleIdentity), or its token; a call with
// neither has no identity.
// REQUIRES: `files` is from CheckTlsDirectory.
std::shared_ptr<grpc::ServerCredentials> TlsServerCredentialsOf(const TlsFiles& files);

// A server is accepted if an authority of ca.pem signed its certificate and its identity is a
// coordinator of the cluster of `files.identity`; its host name does not count.
// REQUIRES: `files` is from CheckTlsDirectory or CheckAuthorityIn.
std::shared_ptr<grpc::ChannelCredentials> TlsChannelCredentialsOf(const TlsFiles& files);

// The same for a user who holds a token, whose text every call has as the metadata "authorization".
// REQUIRES: `files` is from CheckAuthorityIn.
std::shared_ptr<grpc::ChannelCredentials> TokenChannelCredentialsOf(const TlsFiles& files,
                                                                    const std::string& token);

// Credentials of a channel without a certificate of its own. A server is accepted if one of
// `authorities`, in PEM, signed its certificate and its identity is a coordinator of `cluster`.
// REQUIRES: CheckCertificates accepts `authorities`.
std::shared_ptr<grpc::ChannelCredentials> AnonymousChannelCredentials(
    const std::string& authorities, const std::string& cluster);

// As AnonymousChannelCredentials, but any server is accepted: nothing that it answers is proven,
// and nothing secret may be sent to it.
std::shared_ptr<grpc::ChannelCredentials> UnverifiedChannelCredentials();

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_CREDENTIALS_H_

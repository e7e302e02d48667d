#include "base/http/test_http_client.h"

#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <memory>

#include "base/check.h"
#include "base/http/http_tls.h"
#include "base/security/certificate.h"
#include "base/security/openssl.h"

namespace troupe {
namespace {

using ClientContext = std::unique_ptr<SSL_CTX, openssl::Deleter<SSL_CTX_free>>;

int Connect(int port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  TROUPE_CHECK(descriptor >= 0, "socket");
  const timeval limit{.tv_sec = 20, .tv_usec = 0};
  TROUPE_CHECK(setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  TROUPE_CHECK(connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
               "nothing listens on port {}", port);
  return descriptor;
}

std::string RequestOf(std::string_view path, std::string_view headers) {
  return fmt::format("GET {} HTTP/1.1\r\n{}\r\n", path, headers);
}

ClientContext MakeClientContext(const std::optional<CertifiedKey>& holder) {
  ClientContext context(SSL_CTX_new(TLS_client_method()));
  if (holder) {
    const auto certificates = openssl::ParseCertificates(holder->certificate);
    const auto key = openssl::ParseKey(holder->key);
    TROUPE_CHECK(certificates.ok() && key.ok());
    TROUPE_CHECK(SSL_CTX_use_certificate(context.get(), certificates->front().get()) == 1);
    TROUPE_CHECK(SSL_CTX_use_PrivateKey(context.get(), key->get()) == 1);
  }
  return context;
}

std::string SerialOfPeer(SSL* session) {
  const openssl::Certificate certificate(SSL_get1_peer_certificate(session));
  if (certificate == nullptr) return "";
  const openssl::Bio pem(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(pem.get(), certificate.get());
  const auto facts = ReadCertificate(openssl::TextOf(pem));
  return facts.ok() ? facts->serial : "";
}

}  // namespace

TestConnection::TestConnection(int port) : descriptor_(Connect(port)) {}
TestConnection::~TestConnection() { close(descriptor_); }

bool TestConnection::Send(std::string_view bytes) const {
  return send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

std::string TestConnection::ReadAll() const {
  std::string text;
  char bytes[4096];
  for (ssize_t got = 0; (got = recv(descriptor_, bytes, sizeof bytes, 0)) > 0;)
    text.append(bytes, static_cast<size_t>(got));
  return text;
}

bool TestConnection::Ends() const {
  char bytes[4096];
  ssize_t got = 0;
  while ((got = recv(descriptor_, bytes, sizeof bytes, 0)) > 0) {
  }
  return got == 0 || errno == ECONNRESET;
}

std::string GetPlain(int port, std::string_view path, std::string_view headers) {
  const TestConnection connection(port);
  return connection.Send(RequestOf(path, headers)) ? connection.ReadAll() : "";
}

TestAnswer GetWithTls(int port, std::string_view path, const std::optional<CertifiedKey>& holder,
                      std::string_view headers) {
  const openssl::ErrorScope scope;
  const TestConnection connection(port);
  const ClientContext context = MakeClientContext(holder);
  const TlsSession session(SSL_new(context.get()));
  SSL_set_fd(session.get(), connection.descriptor());
  if (SSL_connect(session.get()) != 1) return {};
  TestAnswer answer{.server_serial = SerialOfPeer(session.get())};
  const std::string request = RequestOf(path, headers);
  if (SSL_write(session.get(), request.data(), static_cast<int>(request.size())) <= 0)
    return answer;
  char bytes[4096];
  for (int got = 0; (got = SSL_read(session.get(), bytes, sizeof bytes)) > 0;)
    answer.text.append(bytes, static_cast<size_t>(got));
  return answer;
}

}  // namespace troupe

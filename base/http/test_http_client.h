// A client of HTTP pages for tests, with and without TLS, whose waits are bounded.
#ifndef TROUPE_BASE_HTTP_TEST_HTTP_CLIENT_H_
#define TROUPE_BASE_HTTP_TEST_HTTP_CLIENT_H_

#include <optional>
#include <string>
#include <string_view>

#include "base/security/authority.h"

namespace troupe {

// A connection to `port` of 127.0.0.1. Reading from it waits 20 s at most.
class TestConnection {
 public:
  explicit TestConnection(int port);
  ~TestConnection();
  TestConnection(const TestConnection&) = delete;
  TestConnection& operator=(const TestConnection&) = delete;

  // Returns whether all of `bytes` were sent.
  bool Send(std::string_view bytes) const;
  // Returns all bytes until the connection ends.
  std::string ReadAll() const;
  // Waits until the server ends the connection. Returns whether it did in time.
  bool Ends() const;
  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
};

struct TestAnswer {
  std::string text;           // the whole answer; empty: none
  std::string server_serial;  // serial number of the server's certificate; empty without TLS
};

// The requests have these headers, each with its end of line.
inline constexpr std::string_view kTestHeaders = "Host: a\r\n";

std::string GetPlain(int port, std::string_view path, std::string_view headers = kTestHeaders);
// Presents the certificate of `holder`, or none, and does not verify the server.
TestAnswer GetWithTls(int port, std::string_view path, const std::optional<CertifiedKey>& holder,
                      std::string_view headers = kTestHeaders);

}  // namespace troupe

#endif  // TROUPE_BASE_HTTP_TEST_HTTP_CLIENT_H_

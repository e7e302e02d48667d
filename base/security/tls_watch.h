// Keeps the checked contents of a TLS directory where gRPC's FileWatcherCertificateProvider reads
// them.
//
// gRPC takes whatever a file contains: with half of a certificate, or a key that does not belong to
// it, it refuses every connection until the next change. So gRPC does not read the files of the
// user. A thread reads these once a second, and contents that CheckTlsContents accepts go to files
// in memory, which only this process can open: /proc/self/fd/N. A new file replaces the former one
// at its number in one step, and key and certificate share a file, so gRPC never reads a pair of
// which one part is old. Thread-safe.
#ifndef TROUPE_BASE_SECURITY_TLS_WATCH_H_
#define TROUPE_BASE_SECURITY_TLS_WATCH_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "base/security/tls_reader.h"

namespace troupe {

// A file in memory whose contents are replaced as a whole. The number of its descriptor is never
// closed, because gRPC may open the path until some time after the last use: it goes to the next
// file instead.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // RESOURCE_EXHAUSTED or UNAVAILABLE if the system refuses; the contents are then the former ones.
  Status Replace(const std::string& contents);
  std::string path() const;

 private:
  const int number_;  // -1 if the system refused
};

class TlsWatch {
 public:
  // Reads the files once and starts the thread. REQUIRES: `files` is from CheckTlsDirectory or
  // CheckAuthorityIn.
  explicit TlsWatch(TlsFiles files);
  ~TlsWatch();
  TlsWatch(const TlsWatch&) = delete;
  TlsWatch& operator=(const TlsWatch&) = delete;

  // Reads the files now, as the thread does: TlsReader::Read.
  Status Read(int64_t now_seconds);

  std::string authority_path() const { return authority_.path(); }
  std::string identity_path() const { return identity_.path(); }  // certificate and key

 private:
  Status Use(const TlsContents& contents);
  void Run();

  MemoryFile authority_;
  MemoryFile identity_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  TlsReader reader_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_TLS_WATCH_H_

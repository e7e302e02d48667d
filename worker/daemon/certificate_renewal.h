// Renews the worker's certificate before it expires, if the coordinator signs certificates: a
// thread looks at the certificate each second, asks for a new one when it is due (Renewal), and
// replaces the files of the TLS directory, from which all connections of this process take them
// (TlsWatch). Failures are repeated, and the log warns of them.
#ifndef TROUPE_WORKER_DAEMON_CERTIFICATE_RENEWAL_H_
#define TROUPE_WORKER_DAEMON_CERTIFICATE_RENEWAL_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/security/renewal.h"
#include "base/security/tls_files.h"
#include "base/status.h"

namespace troupe {

// Asks the coordinator at `address` for a new certificate of the holder of `tls`, for a new key,
// and replaces the two in the directory of the files. Returns the facts of the new certificate.
// FAILED_PRECONDITION if the coordinator signs none or the directory cannot be written; the errors
// of ReadUsableTls, of the call and of StoreTlsDirectory. REQUIRES: `context` is new.
StatusOr<CertificateFacts> RenewCertificate(const std::string& address, const TlsFiles& tls,
                                            grpc::ClientContext* context);

class CertificateRenewal {
 public:
  struct Options {
    std::string coordinator;           // HOST:PORT
    TlsFiles tls;                      // from CheckTlsDirectory
    std::function<double()> uniform;   // random numbers from [0, 1)
    std::function<void()> on_renewed;  // called on the thread after each renewal
  };

  explicit CertificateRenewal(Options options);
  // Ends a call that is in progress.
  ~CertificateRenewal();
  CertificateRenewal(const CertificateRenewal&) = delete;
  CertificateRenewal& operator=(const CertificateRenewal&) = delete;

 private:
  void Run();
  void RenewIfDue();
  StatusOr<CertificateFacts> Renew();

  const Options options_;
  Renewal renewal_;  // used by the thread only
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  grpc::ClientContext* call_ = nullptr;  // that of the call in progress
  std::thread thread_;                   // the last member: it uses the others
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_CERTIFICATE_RENEWAL_H_

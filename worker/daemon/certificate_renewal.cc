#include "worker/daemon/certificate_renewal.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/log.h"
#include "base/security/authority_files.h"
#include "base/security/channel_arguments.h"
#include "base/security/credentials.h"
#include "base/security/signing_request.h"
#include "base/text_file.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

constexpr std::chrono::seconds kLookInterval{1};
constexpr std::chrono::seconds kRenewLimit{20};

int64_t Now() { return WallSeconds(SystemClock()); }

Status CheckWritable(const std::string& directory) {
  if (access(directory.c_str(), W_OK) == 0) return OkStatus();
  return FailedPrecondition("{} cannot be written ({}): whoever manages it has to renew it",
                            directory, std::strerror(errno));
}

}  // namespace

StatusOr<CertificateFacts> RenewCertificate(const std::string& address, const TlsFiles& tls,
                                            grpc::ClientContext* context) {
  const std::string directory = ParentDirectory(tls.certificate);
  TROUPE_RETURN_IF_ERROR(CheckWritable(directory));
  // It can be renewed only over a connection with it.
  TROUPE_RETURN_IF_ERROR(ReadUsableTls(tls, Now()).status());
  TROUPE_ASSIGN_OR_RETURN(const SigningRequest made, MakeSigningRequest());
  const auto channel = grpc::CreateCustomChannel(address, TlsChannelCredentialsOf(tls),
                                                 CoordinatorChannelArguments());
  v1::RenewRequest request;
  request.set_certificate_request(made.request);
  v1::RenewResponse response;
  context->set_deadline(std::chrono::system_clock::now() + kRenewLimit);
  const grpc::Status answered =
      v1::EnrollmentService::NewStub(channel)->Renew(context, request, &response);
  if (!answered.ok())
    return MakeStatus(static_cast<StatusCode>(answered.error_code()), answered.error_message());
  // The authorities stay the former ones: whoever manages the cluster replaces them.
  TROUPE_ASSIGN_OR_RETURN(std::string authorities, ReadTextFile(tls.authority));
  return StoreTlsDirectory(directory, tls.identity,
                           {std::move(authorities), response.certificate(), made.key}, Now());
}

CertificateRenewal::CertificateRenewal(Options options)
    : options_(std::move(options)), renewal_(options_.uniform) {
  thread_ = std::thread([this] { Run(); });
}

CertificateRenewal::~CertificateRenewal() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }
  ended_.notify_all();
  thread_.join();
}

void CertificateRenewal::Run() {
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    RenewIfDue();
    lock.lock();
  } while (!ended_.wait_for(lock, kLookInterval, [this] { return ends_; }));
}

void CertificateRenewal::RenewIfDue() {
  const auto text = ReadTextFile(options_.tls.certificate);
  const auto used = text.ok() ? ReadCertificate(*text) : text.status();
  if (!used.ok()) return;  // TlsWatch reports it
  if (!renewal_.IsDue(*used, Now())) return;
  const auto renewed = Renew();
  if (renewed.ok()) {
    LogInfo("security", "the certificate of {} is renewed: it is valid until {}",
            ToUri(renewed->identity), UtcText(renewed->not_after));
    options_.on_renewed();
    return;
  }
  const std::string warning = renewal_.Failed(renewed.status(), Now());
  if (!warning.empty()) LogWarning("security", "{}", warning);
}

StatusOr<CertificateFacts> CertificateRenewal::Renew() {
  grpc::ClientContext context;
  {
    const std::lock_guard lock(mutex_);
    if (ends_) return Cancelled("this worker ends");
    call_ = &context;
  }
  auto renewed = RenewCertificate(options_.coordinator, options_.tls, &context);
  const std::lock_guard lock(mutex_);
  call_ = nullptr;
  return renewed;
}

}  // namespace troupe

// The command's client of the API. It finds the coordinator, calls it, waits for a limited time
// while it restarts, and converts gRPC's status to ours with its BadRequest details.
//
// Not thread-safe, except that any thread may cancel the context of a running stream.
#ifndef TROUPE_CLI_CLIENT_H_
#define TROUPE_CLI_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/security/tls_files.h"
#include "base/status.h"
#include "cli/command_line.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {

// A coordinator that a command is to call.
struct CoordinatorEndpoint {
  std::string address;             // HOST:PORT
  std::optional<std::string> tls;  // directory of the TLS files; absent: without TLS
  // File of the user's token; absent: the caller has a certificate, or there is no TLS.
  std::optional<std::string> token_file;
};

// Returns the coordinator of the command: --coordinator, else that of the cluster in --data-dir,
// else TROUPE_COORDINATOR, else that of this user's newest local cluster; and --tls-dir, else
// TROUPE_TLS_DIR unless it is that of a local cluster, which has no certificates; and --token-file,
// else TROUPE_TOKEN_FILE with the same exception. UNAVAILABLE if there is no coordinator or no
// cluster is up in --data-dir, INVALID_ARGUMENT if the address is not HOST:PORT, or if there is a
// token but no TLS directory.
StatusOr<CoordinatorEndpoint> FindCoordinator(const CommandLine& line);

// Returns whether `address` is this machine, so that paths in a request refer to its files.
bool IsLocalAddress(const std::string& address);

Status FromGrpcStatus(const grpc::Status& status);

// Follows the page tokens of one list, which the coordinator chooses.
class PageTokens {
 public:
  // Sets the token of the next request from `page`, and returns whether there is a next page.
  // INTERNAL if an earlier page had the same token: the list would have no end.
  template <typename Page, typename Request>
  StatusOr<bool> Next(const Page& page, Request* request) {
    request->set_page_token(page.next_page_token());
    if (page.next_page_token().empty()) return false;
    if (earlier_.insert(page.next_page_token()).second) return true;
    return Internal("the coordinator repeats the page token \"{}\", so that its list has no end",
                    page.next_page_token());
  }

 private:
  std::set<std::string> earlier_;
};

class Client {
 public:
  static constexpr std::chrono::seconds kCallLimit{30};
  // The deadline of a call that waits for a checkpoint, which is written between two steps of a job
  // that may be large.
  static constexpr std::chrono::seconds kCheckpointLimit{900};
  // The deadline of a call that traces future steps: slightly longer than the coordinator waits for
  // them.
  static constexpr std::chrono::seconds kTraceLimit{630};
  // A supervised coordinator is back within a second; an unsupervised one gets this long.
  static constexpr std::chrono::seconds kReconnectLimit{5};

  // Makes a client of FindCoordinator(line), with its errors. INVALID_ARGUMENT if the TLS files or
  // the token are not usable; UNAVAILABLE of the coordinator if it would not accept the
  // certificate, because it is not valid now. With a token the certificate is not used.
  static StatusOr<Client> Make(const CommandLine& line);
  // Makes a client of the coordinator at `address`, HOST:PORT. With `token`, the text of one, `tls`
  // is from CheckAuthorityIn.
  static Client At(std::string address, const std::optional<TlsFiles>& tls = {},
                   const std::optional<std::string>& token = {});

  const std::string& address() const { return address_; }
  v1::JobService::Stub& jobs() { return *jobs_; }
  v1::PlanService::Stub& plans() { return *plans_; }
  v1::CheckpointService::Stub& checkpoints() { return *checkpoints_; }
  v1::ClusterService::Stub& cluster() { return *cluster_; }
  v1::EnrollmentService::Stub& enrollment() { return *enrollment_; }
  v1::AccessService::Stub& access() { return *access_; }

  // Returns the job named "jobs/x"; NOT_FOUND if there is none. `limit` is that of Call.
  StatusOr<v1::Job> GetJob(const std::string& name, std::chrono::seconds limit = kCallLimit);

  // Prints a warning on stderr, once, if the coordinator runs with --insecure. Call does that by
  // itself. REQUIRES: the call of `context` has ended, or has returned a message.
  void WarnIfInsecure(const grpc::ClientContext& context);

  // Waits until the channel is connected. UNAVAILABLE after `limit`.
  Status WaitUntilConnected(std::chrono::milliseconds limit);

  enum class Repeat {
    kSafe,  // the call is idempotent: repeated while the coordinator restarts
    kNever,
  };
  // Calls `method` (a lambda of context and response) with a deadline of `limit`.
  template <typename Response>
  StatusOr<Response> Call(Repeat repeat, std::chrono::seconds limit, const auto& method) {
    const auto give_up = std::chrono::steady_clock::now() + kReconnectLimit;
    while (true) {
      TROUPE_RETURN_IF_ERROR(WaitUntilConnected(Remaining(give_up)));
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + limit);
      Response response;
      const Status status = FromGrpcStatus(method(&context, &response));
      WarnIfInsecure(context);
      if (status.ok()) return response;
      const bool lost = status.code() == StatusCode::kUnavailable;
      if (!lost) return status;
      if (repeat == Repeat::kNever || Remaining(give_up).count() == 0) {
        return Annotate(status, address_);
      }
      PauseBeforeRepeat();
    }
  }

 private:
  Client() = default;
  static void PauseBeforeRepeat();
  static std::chrono::milliseconds Remaining(std::chrono::steady_clock::time_point end);

  std::string address_;
  std::optional<TlsFiles> tls_;
  bool has_warned_ = false;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::PlanService::Stub> plans_;
  std::unique_ptr<v1::CheckpointService::Stub> checkpoints_;
  std::unique_ptr<v1::ClusterService::Stub> cluster_;
  std::unique_ptr<v1::EnrollmentService::Stub> enrollment_;
  std::unique_ptr<v1::AccessService::Stub> access_;
};

}  // namespace troupe

#endif  // TROUPE_CLI_CLIENT_H_

#include "cli/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/flag_parser.h"
#include "base/program/program.h"
#include "base/security/certificate.h"
#include "base/security/channel_arguments.h"
#include "base/security/credentials.h"
#include "base/security/insecure_reminder.h"
#include "base/security/user_token.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/process.h"
#include "cli/cluster/running_clusters.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace troupe {
namespace {

StatusOr<std::string> AddressOfCluster(const std::string& folder) {
  const auto cluster = ReadClusterFile(folder);
  if (!cluster.ok() && cluster.status().code() == StatusCode::kNotFound) {
    return OfCoordinator(Unavailable("no cluster is running in {}", folder));
  }
  TROUPE_RETURN_IF_ERROR(cluster.status());
  if (!IsAlive(cluster->supervisor)) {
    PrintMessage(
        "the supervisor of the cluster in {} has died: `troupe up --data-dir {}` repairs the "
        "cluster\n",
        folder, folder);
  }
  return cluster->coordinator_address;
}

StatusOr<TlsFiles> UsableTlsFiles(const std::string& directory) {
  const int64_t now_seconds = WallSeconds(SystemClock());
  auto files = CheckTlsDirectory(directory, now_seconds);
  if (files.ok()) return files;
  // The files are in order, but the coordinator would not accept a certificate that has expired.
  const auto contents = ReadTlsContents(TlsFilesIn(directory));
  if (!contents.ok()) return files;
  const auto certificate = ReadCertificate(contents->certificate);
  if (!certificate.ok() || CheckValidAt(*certificate, now_seconds).ok()) return files;
  return OfCoordinator(Unavailable("{}", Message(files.status())));
}

// Returns the time of validity of the command's certificate, for readers whose clock differs from
// the coordinator's; empty if it has none or it cannot be read.
std::string ValidityHint(const TlsFiles& files) {
  if (!files.has_certificate()) return "";
  const auto contents = ReadTlsContents(files);
  if (!contents.ok()) return "";
  const auto facts = ReadCertificate(contents->certificate);
  if (!facts.ok()) return "";
  return fmt::format(
      ": this command's is {}; a host whose clock is outside of that time refuses it",
      ValidityText(facts->not_before, facts->not_after, WallSeconds(SystemClock())));
}

// Returns the endpoint with the TLS files and the token of the command: those of the flags, else,
// if `uses_environment`, those of the environment.
StatusOr<CoordinatorEndpoint> EndpointAt(std::string address, const CommandLine& line,
                                         bool uses_environment) {
  CoordinatorEndpoint endpoint{std::move(address), line.Get(kTlsDirFlag), line.Get(kTokenFileFlag)};
  if (!endpoint.tls && uses_environment) {
    TROUPE_ASSIGN_OR_RETURN(endpoint.tls, TextFromEnvironment("TROUPE_TLS_DIR"));
  }
  if (!endpoint.token_file && uses_environment) {
    TROUPE_ASSIGN_OR_RETURN(endpoint.token_file, TextFromEnvironment("TROUPE_TOKEN_FILE"));
  }
  if (endpoint.token_file && !endpoint.tls) {
    return InvalidArgument(
        "a token is sent over TLS only: give --tls-dir, a directory with ca.pem, for the token in "
        "{}",
        *endpoint.token_file);
  }
  return endpoint;
}

// Makes the client of a user with a token.
StatusOr<Client> MakeWithToken(const CoordinatorEndpoint& endpoint) {
  TROUPE_ASSIGN_OR_RETURN(const std::string token, ReadTokenFile(*endpoint.token_file));
  TROUPE_ASSIGN_OR_RETURN(const UserTokenParts parts, ParseUserToken(token));
  TROUPE_ASSIGN_OR_RETURN(const TlsFiles files, CheckAuthorityIn(*endpoint.tls, parts.cluster));
  return Client::At(endpoint.address, files, token);
}

}  // namespace

StatusOr<CoordinatorEndpoint> FindCoordinator(const CommandLine& line) {
  const auto remote = [&](const char* from,
                          const std::string& address) -> StatusOr<CoordinatorEndpoint> {
    TROUPE_RETURN_IF_ERROR(CheckHostPort(from, address, 1));
    return EndpointAt(address, line, true);
  };
  const auto local = [&](const std::string& folder) -> StatusOr<CoordinatorEndpoint> {
    TROUPE_ASSIGN_OR_RETURN(std::string address, AddressOfCluster(folder));
    return EndpointAt(std::move(address), line, false);
  };
  if (const auto& address = line.Get(kCoordinatorFlag))
    return remote(kCoordinatorFlag.name, *address);
  if (const auto& folder = line.Get(kLocalClusterFlag)) return local(*folder);
  TROUPE_ASSIGN_OR_RETURN(const std::optional<std::string> address,
                          TextFromEnvironment("TROUPE_COORDINATOR"));
  if (address) return remote("TROUPE_COORDINATOR", *address);
  const std::vector<std::string> running = RunningClusters();
  if (running.empty()) {
    return OfCoordinator(Unavailable(
        "no coordinator is given and no local cluster is running: give --coordinator HOST:PORT or "
        "--data-dir DIR, set TROUPE_COORDINATOR, or start a cluster with `troupe up`"));
  }
  if (running.size() > 1) {
    PrintMessage("{} local clusters are running; this command uses the newest, in {}\n",
                 running.size(), running.front());
  }
  return local(running.front());
}

bool IsLocalAddress(const std::string& address) {
  for (const char* prefix : {"127.", "localhost:", "[::1]:", "ipv4:127."}) {
    if (address.starts_with(prefix)) return true;
  }
  return false;
}

Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return OkStatus();
  // gRPC itself answers so to a message that it cannot read.
  const auto code = static_cast<StatusCode>(status.error_code());
  std::string message = status.error_message();
  if (message.empty())
    message = fmt::format("{}, without a reason", absl::StatusCodeToString(code));
  Status ours = MakeStatus(code, message);
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    for (const auto& detail : details.details()) {
      ours.SetPayload(absl::string_view(detail.type_url().data(), detail.type_url().size()),
                      absl::Cord(detail.value()));
    }
  }
  return OfCoordinator(std::move(ours));
}

StatusOr<Client> Client::Make(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(CoordinatorEndpoint endpoint, FindCoordinator(line));
  if (!endpoint.tls) return At(std::move(endpoint.address));
  if (endpoint.token_file) return MakeWithToken(endpoint);
  TROUPE_ASSIGN_OR_RETURN(const TlsFiles files, UsableTlsFiles(*endpoint.tls));
  return At(std::move(endpoint.address), files);
}

Client Client::At(std::string address, const std::optional<TlsFiles>& tls,
                  const std::optional<std::string>& token) {
  Client client;
  client.address_ = std::move(address);
  client.tls_ = tls;
  grpc::ChannelArguments arguments = CoordinatorChannelArguments();
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  // The coordinator limits the bytes of a trace.
  arguments.SetMaxReceiveMessageSize(-1);
  const auto credentials = !tls    ? grpc::InsecureChannelCredentials()
                           : token ? TokenChannelCredentialsOf(*tls, *token)
                                   : TlsChannelCredentialsOf(*tls);
  client.channel_ = grpc::CreateCustomChannel(client.address_, credentials, arguments);
  client.jobs_ = v1::JobService::NewStub(client.channel_);
  client.plans_ = v1::PlanService::NewStub(client.channel_);
  client.checkpoints_ = v1::CheckpointService::NewStub(client.channel_);
  client.cluster_ = v1::ClusterService::NewStub(client.channel_);
  client.enrollment_ = v1::EnrollmentService::NewStub(client.channel_);
  client.access_ = v1::AccessService::NewStub(client.channel_);
  return client;
}

StatusOr<v1::Job> Client::GetJob(const std::string& name, std::chrono::seconds limit) {
  v1::GetJobRequest request;
  request.set_name(name);
  TROUPE_ASSIGN_OR_RETURN(
      v1::GetJobResponse found,
      Call<v1::GetJobResponse>(Repeat::kSafe, limit, [&](auto* context, auto* response) {
        return jobs_->GetJob(context, request, response);
      }));
  return std::move(*found.mutable_job());
}

Status Client::WaitUntilConnected(std::chrono::milliseconds limit) {
  if (channel_->WaitForConnected(std::chrono::system_clock::now() + limit)) return OkStatus();
  if (!tls_) {
    return OfCoordinator(
        Unavailable("cannot reach the coordinator at {}; if it is running, it may accept only "
                    "connections with TLS (--tls-dir)",
                    address_));
  }
  return OfCoordinator(
      Unavailable("cannot reach the coordinator at {}; if it is running, its certificate or this "
                  "command's is not accepted{}",
                  address_, ValidityHint(*tls_)));
}

void Client::WarnIfInsecure(const grpc::ClientContext& context) {
  if (has_warned_ || !context.GetServerInitialMetadata().contains(kInsecureHeader)) return;
  has_warned_ = true;
  PrintMessage(
      "warning: the coordinator at {} runs with --insecure: whoever reaches it has every "
      "role\n",
      address_);
}

void Client::PauseBeforeRepeat() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

std::chrono::milliseconds Client::Remaining(std::chrono::steady_clock::time_point end) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

}  // namespace troupe

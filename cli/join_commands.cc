// The commands certs token and certs join: a new worker gets its certificate from the coordinator.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/program/program.h"
#include "base/security/authority_files.h"
#include "base/security/channel_arguments.h"
#include "base/security/credentials.h"
#include "base/security/identity.h"
#include "base/security/join_token.h"
#include "base/security/signing_request.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/issued_certificate.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr int kMostMinutes = 24 * 60;
constexpr int64_t kSecondsOfMinute = 60;
constexpr int64_t kNanosecondsOfASecond = 1'000'000'000;
// The limit of each call of a new worker, which has no connection yet.
constexpr std::chrono::seconds kJoinCallLimit{30};

constexpr TextFlag kJoinerNameFlag{
    "--name", "NAME", "the only worker that may join with the token (default: any, by its --name)"};
constexpr NumberFlag<int> kMinutesFlag{
    {"--minutes", "N", "minutes until the token expires (default: 10)"}, {1, kMostMinutes}};
constexpr TextFlag kJoinCoordinatorFlag{"--coordinator", "HOST:PORT",
                                        "the coordinator of the cluster", true};
constexpr TextFlag kJoinTokenFileFlag{"--token-file", "FILE",
                                      "file with the token, or - for standard input", true};
constexpr TextFlag kJoinOutputFlag{
    "--output", "DIR",
    "the worker's TLS directory: new, or with an older certificate of the same worker", true};
constexpr TextFlag kOwnNameFlag{"--name", "NAME",
                                "the worker's --name (default: that of the certificate in "
                                "--output, or of the token)"};

StatusOr<ExitCode> MakeToken(const CommandLine& line) {
  v1::CreateJoinTokenRequest request;
  request.set_worker(line.Get(kJoinerNameFlag).value_or(""));
  request.set_lifetime_seconds(line.Get(kMinutesFlag).value_or(0) * kSecondsOfMinute);
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(
      const v1::CreateJoinTokenResponse made,
      client.Call<v1::CreateJoinTokenResponse>(
          Client::Repeat::kNever, Client::kCallLimit, [&](auto* context, auto* response) {
            return client.enrollment().CreateJoinToken(context, request, response);
          }));
  const int64_t expires = made.expire_wall_time_ns() / kNanosecondsOfASecond;
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump({{"token", made.token()},
                              {"id", made.id()},
                              {"worker", request.worker()},
                              {"expires", expires}}));
  } else {
    PrintOutput("{}\n", made.token());
    PrintMessage("the token is good for one worker until {}: keep it secret until then\n",
                 UtcText(expires));
  }
  return ExitCode::kDone;
}

StatusOr<JoinToken> ReadToken(const std::string& path) {
  std::ifstream file;
  if (path != "-") file.open(path);
  std::istream& input = path == "-" ? std::cin : file;
  std::string text(kMostJoinTokenBytes * 2, '\0');
  input.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(input.gcount()));
  if (text.empty())
    return InvalidArgument("{} {}: it cannot be read or is empty", kJoinTokenFileFlag.name, path);
  auto token = ParseJoinToken(text);
  if (!token.ok())
    return Annotate(token.status(), fmt::format("{} {}", kJoinTokenFileFlag.name, path));
  return token;
}

// A coordinator that the caller has no certificate for yet.
class NewCoordinator {
 public:
  // `refusal` states why no connection may be possible, if the coordinator can be reached.
  NewCoordinator(const std::string& address,
                 const std::shared_ptr<grpc::ChannelCredentials>& credentials, std::string refusal)
      : address_(address),
        refusal_(std::move(refusal)),
        channel_(grpc::CreateCustomChannel(address, credentials, CoordinatorChannelArguments())),
        stub_(v1::EnrollmentService::NewStub(channel_)) {}

  // Calls `method` (a lambda of stub, context and response). UNAVAILABLE of the coordinator if
  // there is no connection.
  template <typename Response>
  StatusOr<Response> Call(const auto& method) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kJoinCallLimit);
    Response response;
    const Status status = FromGrpcStatus(method(*stub_, &context, &response));
    if (status.ok()) return response;
    const bool is_connected = channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
    if (status.code() == StatusCode::kUnavailable && !is_connected)
      return OfCoordinator(Unavailable("cannot reach the coordinator at {}; if it is running, {}",
                                       address_, refusal_));
    return Annotate(status, address_);
  }

 private:
  const std::string address_;
  const std::string refusal_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::EnrollmentService::Stub> stub_;
};

// Returns the authority of the token, which the coordinator hands out. Any server may answer, but
// only the certificate whose hash the token has is believed.
StatusOr<std::string> FindAuthority(const std::string& address, const JoinToken& token) {
  const NewCoordinator unverified(address, UnverifiedChannelCredentials(),
                                  "it accepts no connections with TLS");
  TROUPE_ASSIGN_OR_RETURN(
      const v1::GetAuthorityResponse answer,
      unverified.Call<v1::GetAuthorityResponse>([](auto& stub, auto* context, auto* response) {
        return stub.GetAuthority(context, v1::GetAuthorityRequest(), response);
      }));
  auto authority = CertificateWithHash(answer.authorities(), token.authority_hash);
  if (authority.ok()) return authority;
  return InvalidArgument(
      "the coordinator at {} is not of the cluster that made this token: {}; nothing was sent to "
      "it, and nothing is written",
      address, Message(authority.status()));
}

StatusOr<CertificateFacts> JoinCluster(const std::string& address, const JoinToken& token,
                                       const std::string& name, const std::string& output) {
  TROUPE_ASSIGN_OR_RETURN(const std::string authority, FindAuthority(address, token));
  TROUPE_ASSIGN_OR_RETURN(const SigningRequest made, MakeSigningRequest());
  v1::JoinRequest request;
  request.set_token(ToText(token));
  request.set_certificate_request(made.request);
  request.set_worker(name);
  const NewCoordinator verified(
      address, AnonymousChannelCredentials(authority, token.cluster),
      "its certificate is not valid or not signed by the authority of the token");
  TROUPE_ASSIGN_OR_RETURN(
      const v1::JoinResponse joined,
      verified.Call<v1::JoinResponse>([&](auto& stub, auto* context, auto* response) {
        return stub.Join(context, request, response);
      }));
  const auto facts = ReadCertificate(joined.certificate());
  if (!facts.ok()) return Annotate(facts.status(), "the coordinator's answer");
  return StoreTlsDirectory(output, facts->identity,
                           {joined.authorities(), joined.certificate(), made.key},
                           std::time(nullptr));
}

// Returns the name with which to ask for a certificate: `requested`, or that of the worker whose
// certificate `output` holds. A token is good once, so the directory is checked before it is used.
StatusOr<std::string> NameFor(const std::string& output, const std::string& cluster,
                              const std::string& requested) {
  TROUPE_ASSIGN_OR_RETURN(const std::optional<Identity> held, CheckTlsOutput(output));
  if (!held) return requested;
  const Identity wanted{cluster, Role::kWorker, requested.empty() ? held->name : requested};
  if (*held == wanted) return wanted.name;
  return AlreadyExists(
      "{} has the certificate of {}, not one of {}: choose another directory or remove it", output,
      ToUri(*held), ToUri(wanted));
}

StatusOr<ExitCode> Join(const CommandLine& line) {
  const std::string& address = *line.Get(kJoinCoordinatorFlag);
  TROUPE_RETURN_IF_ERROR(CheckHostPort(kJoinCoordinatorFlag.name, address, 1));
  const std::string& output = *line.Get(kJoinOutputFlag);
  TROUPE_ASSIGN_OR_RETURN(const JoinToken token, ReadToken(*line.Get(kJoinTokenFileFlag)));
  TROUPE_ASSIGN_OR_RETURN(const std::string name,
                          NameFor(output, token.cluster, line.Get(kOwnNameFlag).value_or("")));
  TROUPE_ASSIGN_OR_RETURN(const CertificateFacts facts, JoinCluster(address, token, name, output));
  PrintIssued(line, facts, output);
  return ExitCode::kDone;
}

}  // namespace

std::vector<Command> JoinCommands() {
  return {
      {.name = "certs token",
       .summary = "Makes a token with which one new worker joins the cluster.",
       .flags = {&kJoinerNameFlag, &kMinutesFlag},
       .run = MakeToken},
      {.name = "certs join",
       .summary = "Gets a worker's certificate from the coordinator for a token of `troupe certs "
                  "token`: the directory for --tls-dir.",
       .flags = {&kJoinCoordinatorFlag, &kJoinTokenFileFlag, &kJoinOutputFlag, &kOwnNameFlag},
       .cluster = ClusterUse::kNone,
       .run = Join},
  };
}

}  // namespace troupe

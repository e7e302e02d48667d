#include "coordinator/service/enrollment_service.h"

#include <algorithm>

#include "base/clock.h"
#include "base/security/certificate_line.h"
#include "base/security/signing_request.h"
#include "coordinator/access/access_processor.h"
#include "coordinator/service/grpc_status.h"
#include "coordinator/service/request_bytes.h"
#include "plan/layout/worker_name.h"

namespace troupe {
namespace {

constexpr char kCreateTokenRpc[] = "/troupe.v1.EnrollmentService/CreateJoinToken";
constexpr char kJoinRpc[] = "/troupe.v1.EnrollmentService/Join";
constexpr char kRenewRpc[] = "/troupe.v1.EnrollmentService/Renew";
constexpr int64_t kNanosecondsOfSecond = 1'000'000'000;

grpc::ServerUnaryReactor* FinishNow(grpc::ServerUnaryReactor* reactor, const Status& status) {
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

// Ends the call with the status that `body` returns in the pool, or with that of the pool.
template <typename Body>
grpc::ServerUnaryReactor* RunIn(const WorkPool& pool, grpc::ServerUnaryReactor* reactor,
                                Body body) {
  pool.Run([reactor, body](const Status& turn) {
    reactor->Finish(ToGrpcStatus(turn.ok() ? body() : turn));
  });
  return reactor;
}

// INVALID_ARGUMENT unless the token was made for the cluster and with the certificate of
// `authority`.
Status CheckMadeFor(const Authority& authority, const JoinToken& token) {
  if (token.cluster != authority.cluster) {
    return InvalidArgument("the join token is for the cluster {}, and this is {}", token.cluster,
                           authority.cluster);
  }
  if (token.authority_hash != authority.hash) {
    return InvalidArgument(
        "the join token was made with another authority than the one of this coordinator");
  }
  return OkStatus();
}

std::string TargetOf(const std::string& worker) { return "workers/" + worker; }

// INVALID_ARGUMENT unless `authority`, that of `directory`, has signed the certificate in `tls`.
Status CheckHasSigned(const std::string& directory, const Authority& authority, const TlsFiles& tls,
                      int64_t now_seconds) {
  if (authority.cluster != tls.identity.cluster) {
    return InvalidArgument("{} is the authority of the cluster {}, and {} is the certificate of {}",
                           directory, authority.cluster, tls.certificate, ToUri(tls.identity));
  }
  TROUPE_ASSIGN_OR_RETURN(const TlsContents contents, ReadTlsContents(tls));
  if (const Status signed_by_it = CheckSigned(contents.certificate, authority.signer.certificate,
                                              Role::kCoordinator, now_seconds);
      !signed_by_it.ok()) {
    return InvalidArgument(
        "{} has not signed {}, so that workers which join could not verify this coordinator: {}",
        directory, tls.certificate, Message(signed_by_it));
  }
  return OkStatus();
}

}  // namespace

StatusOr<Authority> CheckEnrollment(const std::string& directory, const TlsFiles& tls,
                                    int64_t now_seconds) {
  TROUPE_ASSIGN_OR_RETURN(Authority authority, ReadAuthority(directory));
  TROUPE_RETURN_IF_ERROR(CheckHasSigned(directory, authority, tls, now_seconds));
  return authority;
}

Status EnrollmentService::CheckSigns() const {
  if (options_) return OkStatus();
  return FailedPrecondition(
      "this coordinator signs no certificates: it was started without --authority");
}

Status EnrollmentService::CheckVouches(const Authority& authority) const {
  const Status vouches =
      CheckHasSigned(options_->authority, authority, options_->tls, WallSeconds(clock_));
  return vouches.ok() ? OkStatus() : FailedPrecondition("--authority: {}", Message(vouches));
}

StatusOr<Authority> EnrollmentService::ReadNow() {
  auto authority = ReadAuthority(options_->authority);
  if (!authority.ok()) return Unavailable("--authority: {}", Message(authority.status()));
  const std::lock_guard lock(mutex_);
  authority_ = *authority;
  return authority;
}

Authority EnrollmentService::LastRead() const {
  const std::lock_guard lock(mutex_);
  return authority_;
}

StatusOr<std::string> EnrollmentService::Sign(const Authority& authority, const std::string& worker,
                                              const std::string& request, int64_t earliest,
                                              const std::string& serial) const {
  const int64_t now_seconds = WallSeconds(clock_);
  if (earliest > now_seconds) {
    return Unavailable("the certificates of {} were revoked at {}, and it is {}: try again", worker,
                       UtcText(earliest - 1), UtcText(now_seconds));
  }
  return SignRequestedKey(
      authority.signer, request,
      {.common_name = worker,
       .uris = {ToUri({authority.cluster, Role::kWorker, worker})},
       .not_before = std::max(now_seconds - kMostClockSkew, earliest),
       .not_after = std::min(now_seconds + options_->certificate_seconds, authority.not_after),
       .serial = serial});
}

grpc::ServerUnaryReactor* EnrollmentService::CreateJoinToken(
    grpc::CallbackServerContext* context, const v1::CreateJoinTokenRequest* request,
    v1::CreateJoinTokenResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  if (const Status small = CheckRequestBytes(*request); !small.ok())
    return FinishNow(reactor, small);
  const std::string target =
      request->worker().size() <= kMostJoinTokenBytes ? TargetOf(request->worker()) : "";
  Status admitted = RecordChange(audit_, *context, kCreateTokenRpc, target);
  if (admitted.ok()) admitted = CheckSigns();
  if (!admitted.ok()) return FinishNow(reactor, admitted);
  return RunIn(pool_, reactor, [=, this] { return MakeToken(*request, response); });
}

Status EnrollmentService::MakeToken(const v1::CreateJoinTokenRequest& request,
                                    v1::CreateJoinTokenResponse* response) {
  if (!request.worker().empty()) {
    if (const Status good = CheckWorkerName(request.worker()); !good.ok())
      return InvalidArgument("the worker's name \"{}\": the {}", request.worker(), Message(good));
    TROUPE_RETURN_IF_ERROR(CheckIdentityName("the worker's name", request.worker()));
  }
  const int64_t lifetime =
      request.lifetime_seconds() == 0 ? kDefaultJoinTokenSeconds : request.lifetime_seconds();
  if (lifetime < 0 || lifetime > kMostJoinTokenSeconds) {
    return InvalidArgument("lifetime_seconds is {}: a join token is valid for 1 to {}", lifetime,
                           kMostJoinTokenSeconds);
  }
  const StatusOr<Authority> read = ReadNow();
  // Whoever calls has reached the coordinator, which UNAVAILABLE would deny.
  if (!read.ok()) return FailedPrecondition("{}", Message(read.status()));
  const Authority& authority = *read;
  TROUPE_RETURN_IF_ERROR(CheckVouches(authority));
  TROUPE_ASSIGN_OR_RETURN(const JoinToken token, MakeJoinToken(authority.cluster, authority.hash));
  v1::JoinTokenRecord record;
  record.set_worker(request.worker());
  record.set_expire_seconds(WallSeconds(clock_) + lifetime);
  TROUPE_RETURN_IF_ERROR(ledger_.Add(token, record));
  response->set_token(ToText(token));
  response->set_id(token.id);
  response->set_expire_wall_time_ns(record.expire_seconds() * kNanosecondsOfSecond);
  return OkStatus();
}

grpc::ServerUnaryReactor* EnrollmentService::GetAuthority(grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* request,
                                                          grpc::ByteBuffer* response) {
  v1::GetAuthorityRequest parsed;
  Status status = ParseRequest(*request, &parsed);
  if (status.ok()) status = CheckSigns();
  if (status.ok()) {
    v1::GetAuthorityResponse answer;
    answer.set_authorities(LastRead().trusted);
    status = SerializeResponse(answer, response);
  }
  return FinishNow(context->DefaultReactor(), status);
}

grpc::ServerUnaryReactor* EnrollmentService::Join(grpc::CallbackServerContext* context,
                                                  const grpc::ByteBuffer* request,
                                                  grpc::ByteBuffer* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const auto parsed = std::make_shared<v1::JoinRequest>();
  Status admitted = ParseRequest(*request, parsed.get());
  if (admitted.ok()) admitted = CheckSigns();
  if (!admitted.ok()) return FinishNow(reactor, admitted);
  return RunIn(joins_, reactor, [=, this] {
    v1::JoinResponse answer;
    Status joined = JoinWorker(*context, *parsed, &answer);
    if (joined.ok()) joined = SerializeResponse(answer, response);
    // Guesses above the limit are not recorded.
    if (!joined.ok() && joined.code() != StatusCode::kResourceExhausted)
      audit_.log.AppendRefusal(CallerName(audit_, *context), kJoinRpc,
                               std::string(Message(joined)));
    return joined;
  });
}

Status EnrollmentService::JoinWorker(const grpc::CallbackServerContext& context,
                                     const v1::JoinRequest& request, v1::JoinResponse* response) {
  TROUPE_ASSIGN_OR_RETURN(const JoinToken token, ParseJoinToken(request.token()));
  Authority authority = LastRead();
  TROUPE_RETURN_IF_ERROR(CheckMadeFor(authority, token));
  const auto sign = [&](const std::string& worker) -> StatusOr<std::string> {
    // Only for a token with its secret, because a stranger could keep the coordinator reading.
    TROUPE_ASSIGN_OR_RETURN(authority, ReadNow());
    TROUPE_RETURN_IF_ERROR(CheckMadeFor(authority, token));
    if (const Status good = CheckWorkerName(worker); !good.ok())
      return InvalidArgument("the worker's name \"{}\": the {}", worker, Message(good));
    const int64_t revoked = audit_.access.WhenRevoked({authority.cluster, Role::kWorker, worker});
    TROUPE_ASSIGN_OR_RETURN(std::string certificate,
                            Sign(authority, worker, request.certificate_request(), revoked + 1));
    TROUPE_RETURN_IF_ERROR(RecordChange(audit_, context, kJoinRpc, TargetOf(worker)));
    return certificate;
  };
  TROUPE_ASSIGN_OR_RETURN(*response->mutable_certificate(),
                          ledger_.Redeem(token, request.worker(), sign));
  response->set_authorities(authority.trusted);
  return OkStatus();
}

grpc::ServerUnaryReactor* EnrollmentService::Renew(grpc::CallbackServerContext* context,
                                                   const v1::RenewRequest* request,
                                                   v1::RenewResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  Status admitted = CheckRequestBytes(*request);
  if (admitted.ok()) admitted = RecordChange(audit_, *context, kRenewRpc, "");
  if (admitted.ok()) admitted = CheckSigns();
  if (!admitted.ok()) return FinishNow(reactor, admitted);
  return RunIn(pool_, reactor, [=, this] { return RenewWorker(*context, *request, response); });
}

Status EnrollmentService::RenewWorker(const grpc::CallbackServerContext& context,
                                      const v1::RenewRequest& request,
                                      v1::RenewResponse* response) {
  // The caller's access may have ended since the call began.
  TROUPE_ASSIGN_OR_RETURN(const std::optional<Caller> caller, CallerOf(audit_, context));
  if (!caller || !caller->certificate)
    return Unauthenticated("a certificate is renewed over a connection with it");
  const CertificateFacts& old = *caller->certificate;
  TROUPE_RETURN_IF_ERROR(
      CheckKeyIsNew(request.certificate_request(), CertificateOf(*context.auth_context())));
  TROUPE_ASSIGN_OR_RETURN(const Authority authority, ReadNow());
  if (old.identity.cluster != authority.cluster) {
    return Unavailable("--authority is now of the cluster {}, and the caller is {}",
                       authority.cluster, ToUri(old.identity));
  }
  // A revocation that is made meanwhile refuses both certificates: the new one is of the line of
  // the old one, and begins no later than that, or kMostClockSkew ago.
  TROUPE_ASSIGN_OR_RETURN(const std::string serial, SerialOfRenewal(old.serial));
  TROUPE_ASSIGN_OR_RETURN(
      *response->mutable_certificate(),
      Sign(authority, old.identity.name, request.certificate_request(), old.not_before, serial));
  return OkStatus();
}

}  // namespace troupe

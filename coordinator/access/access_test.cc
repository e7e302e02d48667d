#include "coordinator/access/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "troupe/v1/service.pb.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Identity IdentityOfRole(Role role) { return {.cluster = "lab", .role = role, .name = "ann"}; }

// The letters of the roles that may call each RPC: viewer, submitter, operator, worker and
// coordinator, with a star if callers without a certificate may too. This is the table again,
// written by hand.
const std::map<std::string, std::string> kExpected = {
    {"/troupe.v1.JobService/CreateJob", "so"},
    {"/troupe.v1.JobService/GetJob", "vso"},
    {"/troupe.v1.JobService/ListJobs", "vso"},
    {"/troupe.v1.JobService/WatchJob", "vso"},
    {"/troupe.v1.JobService/CancelJob", "so"},
    {"/troupe.v1.JobService/ResumeJob", "so"},
    {"/troupe.v1.JobService/DeleteJob", "so"},
    {"/troupe.v1.JobService/ReadJobLogs", "vso"},
    {"/troupe.v1.JobService/GetJobReceipt", "vso"},
    {"/troupe.v1.JobService/TraceJob", "so"},
    {"/troupe.v1.PlanService/PlanJob", "so"},
    {"/troupe.v1.CheckpointService/ListCheckpoints", "vso"},
    {"/troupe.v1.CheckpointService/GetCheckpoint", "vso"},
    {"/troupe.v1.CheckpointService/CreateCheckpoint", "so"},
    {"/troupe.v1.CheckpointService/PinCheckpoint", "o"},
    {"/troupe.v1.CheckpointService/LiftQuarantine", "o"},
    {"/troupe.v1.CheckpointService/RebuildJob", "o"},
    {"/troupe.v1.ClusterService/ListWorkers", "vso"},
    {"/troupe.v1.ClusterService/DrainWorker", "o"},
    {"/troupe.v1.ClusterService/UndrainWorker", "o"},
    {"/troupe.v1.WorkerService/Session", "w"},
    {"/troupe.v1.EnrollmentService/CreateJoinToken", "o"},
    {"/troupe.v1.EnrollmentService/GetAuthority", "vsowc*"},
    {"/troupe.v1.EnrollmentService/Join", "vsowc*"},
    {"/troupe.v1.EnrollmentService/Renew", "w"},
    {"/troupe.v1.AccessService/CreateUserToken", "o"},
    {"/troupe.v1.AccessService/ListUserTokens", "o"},
    {"/troupe.v1.AccessService/RevokeUserToken", "o"},
    {"/troupe.v1.AccessService/RevokeCertificate", "o"},
    {"/troupe.v1.AccessService/ListRevocations", "o"},
    {"/externalscaler.ExternalScaler/IsActive", "vso"},
    {"/externalscaler.ExternalScaler/StreamIsActive", "vso"},
    {"/externalscaler.ExternalScaler/GetMetricSpec", "vso"},
    {"/externalscaler.ExternalScaler/GetMetrics", "vso"},
    {"/grpc.health.v1.Health/Check", "vsowc"},
    {"/grpc.health.v1.Health/Watch", "vsowc"},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "vso"},
};

TEST(Access, TheTableIsTheOneThatWasReviewed) {
  std::map<std::string, std::string> table;
  for (const AccessRow& row : AccessTable()) {
    std::string& roles = table[std::string(row.rpc)];
    EXPECT_EQ(roles, "") << row.rpc << " has two rows";
    for (const RoleEntry& entry : kRoles) {
      if (row.Allows(entry.role)) roles += entry.name[0];
    }
    if (row.AllowsAnonymous()) roles += '*';
  }
  EXPECT_EQ(table, kExpected);
}

// The service test compares the table with the services that a server has.
TEST(Access, EveryRpcOfTheSchemaHasARowAndEveryRowAnRpc) {
  std::set<std::string> rpcs;
  const auto* const file = v1::CreateJobRequest::descriptor()->file();
  for (int i = 0; i < file->service_count(); ++i) {
    const auto* const service = file->service(i);
    for (int j = 0; j < service->method_count(); ++j)
      rpcs.insert("/" + service->full_name() + "/" + service->method(j)->name());
  }
  EXPECT_GT(rpcs.size(), 15u);
  std::set<std::string> rows;
  for (const AccessRow& row : AccessTable()) {
    if (row.rpc.starts_with("/troupe.")) rows.insert(std::string(row.rpc));
  }
  EXPECT_EQ(rows, rpcs);
}

TEST(Access, ARefusalNamesTheRpcTheRolesAndTheCaller) {
  const Status refused =
      CheckAccess("/troupe.v1.JobService/CancelJob", IdentityOfRole(Role::kViewer));
  EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(ToString(refused), AllOf(HasSubstr("/troupe.v1.JobService/CancelJob"),
                                       HasSubstr("requires the role submitter or operator"),
                                       HasSubstr("ann has the role viewer")));
  EXPECT_TRUE(
      CheckAccess("/troupe.v1.JobService/CancelJob", IdentityOfRole(Role::kSubmitter)).ok());
  EXPECT_TRUE(CheckAccess("/troupe.v1.JobService/CancelJob", IdentityOfRole(Role::kOperator)).ok());
}

TEST(Access, AnRpcWithoutARowIsRefusedToEverybody) {
  for (const char* rpc : {"", "/", "/troupe.v1.JobService/", "CancelJob",
                          "/troupe.v1.JobService/canceljob", "/troupe.v1.JobService/CancelJob/"}) {
    for (const RoleEntry& entry : kRoles) {
      EXPECT_EQ(CheckAccess(rpc, IdentityOfRole(entry.role)).code(), StatusCode::kPermissionDenied)
          << rpc;
    }
  }
}

TEST(Access, WithoutACertificateAlmostNothingMayBeCalled) {
  EXPECT_TRUE(CheckAnonymousAccess("/troupe.v1.EnrollmentService/Join").ok());
  for (const char* rpc : {"/troupe.v1.JobService/ListJobs", "/grpc.health.v1.Health/Check",
                          "/troupe.v1.EnrollmentService/Renew", ""}) {
    const Status refused = CheckAnonymousAccess(rpc);
    EXPECT_EQ(refused.code(), StatusCode::kUnauthenticated) << rpc;
    EXPECT_THAT(ToString(refused), AllOf(HasSubstr(rpc), HasSubstr("requires a certificate")));
  }
}

TEST(Access, AWorkerOpensASessionUnderItsOwnNameOnly) {
  EXPECT_TRUE(CheckWorkerNamed(IdentityOfRole(Role::kWorker), "ann").ok());
  const Status refused = CheckWorkerNamed(IdentityOfRole(Role::kWorker), "bob");
  EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(ToString(refused), AllOf(HasSubstr("spiffe://lab/worker/ann"), HasSubstr("\"bob\"")));
  EXPECT_FALSE(CheckWorkerNamed(IdentityOfRole(Role::kWorker), "").ok());
  EXPECT_FALSE(CheckWorkerNamed(IdentityOfRole(Role::kOperator), "ann").ok());
}

TEST(Access, TextThatIsNoCertificateAuthenticatesNobody) {
  for (const char* pem :
       {"", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}) {
    EXPECT_EQ(Authenticate(pem, "lab", 0).status().code(), StatusCode::kUnauthenticated) << pem;
  }
}

}  // namespace
}  // namespace troupe

#include "base/security/authority_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <barrier>
#include <ctime>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/security/certificate.h"
#include "base/security/join_token.h"
#include "base/security/test_certificates.h"
#include "base/security/tls_files.h"
#include "base/temporary_directory.h"
#include "base/text_file.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ReasonOf(const Status& status) { return std::string(Message(status)); }

int ModeOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return static_cast<int>(info.st_mode & 07777);
}

std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

class AuthorityFilesTest : public testing::Test {
 protected:
  AuthorityFilesTest() { EXPECT_TRUE(WriteNewAuthority(authority_, "lab", now_).ok()); }

  StatusOr<CertificateFacts> Issue(const IssueRequest& request) const {
    return IssueTlsDirectory(authority_, request, output_, now_);
  }

  const int64_t now_ = std::time(nullptr);
  const TemporaryDirectory directory_;
  const std::string authority_ = directory_.Child("authority");
  const std::string output_ = directory_.Child("tls");
  const IssueRequest worker_{.role = Role::kWorker, .name = "worker-0", .days = 1};
};

TEST_F(AuthorityFilesTest, AnAuthorityHasThreeFilesAndASecretKey) {
  EXPECT_THAT(NamesIn(authority_), ElementsAre("authority.key", "authority.pem", "ca.pem"));
  EXPECT_EQ(ModeOf(authority_ + "/authority.key"), 0600);
  EXPECT_EQ(*ReadTextFile(authority_ + "/authority.pem"), *ReadTextFile(authority_ + "/ca.pem"));
}

TEST_F(AuthorityFilesTest, AnAuthorityIsNeverReplaced) {
  const std::string key = *ReadTextFile(authority_ + "/authority.key");
  const Status again = WriteNewAuthority(authority_ + "/", "other", now_);
  EXPECT_EQ(again.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(ReasonOf(again), HasSubstr("exists and is not empty"));
  EXPECT_EQ(*ReadTextFile(authority_ + "/authority.key"), key);
  EXPECT_THAT(NamesIn(directory_.path()), ElementsAre("authority"));
}

TEST_F(AuthorityFilesTest, ItIsMadeInANewAnEmptyOrADeepDirectory) {
  const std::string empty = directory_.Child("empty");
  std::filesystem::create_directory(empty);
  EXPECT_TRUE(WriteNewAuthority(empty, "lab", now_).ok());
  EXPECT_THAT(NamesIn(empty), ElementsAre("authority.key", "authority.pem", "ca.pem"));
  EXPECT_TRUE(WriteNewAuthority(directory_.Child("a/b/c//"), "lab", now_).ok());
  EXPECT_EQ(ModeOf(directory_.Child("a/b/c")), 0700);
  WriteTextFile(directory_.Child("file"), "x");
  EXPECT_FALSE(WriteNewAuthority(directory_.Child("file"), "lab", now_).ok());
  EXPECT_FALSE(WriteNewAuthority(directory_.Child("file/below"), "lab", now_).ok());
  EXPECT_FALSE(WriteNewAuthority(directory_.Child("new"), "a/b", now_).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_.Child("new")));
}

TEST_F(AuthorityFilesTest, AnIssuedDirectoryPassesTheCheckOfItsUsers) {
  const auto facts = Issue(worker_);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->identity, (Identity{"lab", Role::kWorker, "worker-0"}));
  EXPECT_EQ(facts->not_after, now_ + kTestDay);
  EXPECT_THAT(NamesIn(output_), ElementsAre("ca.pem", "cert.pem", "key.pem"));
  EXPECT_EQ(ModeOf(output_ + "/key.pem"), 0600);
  const auto files = CheckTlsDirectory(output_, now_);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->identity, facts->identity);
}

TEST_F(AuthorityFilesTest, AHostWhoseClockIsMinutesLateAcceptsANewCertificate) {
  static_assert(kMostClockSkew >= 300);
  ASSERT_TRUE(Issue(worker_).ok());
  EXPECT_TRUE(CheckTlsDirectory(output_, now_ - kMostClockSkew).ok());
  // Beyond that, the refusal names both times.
  const int64_t later = now_ - kMostClockSkew - 1;
  const auto refused = CheckTlsDirectory(output_, later);
  EXPECT_EQ(std::string(Message(refused.status())),
            fmt::format("{}: the certificate of spiffe://lab/worker/worker-0 is not valid before "
                        "{}, and it is {}",
                        output_ + "/cert.pem", UtcText(now_ - kMostClockSkew), UtcText(later)));
}

TEST_F(AuthorityFilesTest, ACertificateFromNowOnIsNotDatedBack) {
  IssueRequest request = worker_;
  request.from_now = true;
  const auto facts = Issue(request);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->not_before, now_);
}

TEST_F(AuthorityFilesTest, EveryAuthorityOfCaPemIsHandedOut) {
  const TestAuthority former("lab");
  const std::string both = *ReadTextFile(authority_ + "/ca.pem") + former.pem();
  WriteTextFile(authority_ + "/ca.pem", both);
  ASSERT_TRUE(Issue(worker_).ok());
  EXPECT_EQ(*ReadTextFile(output_ + "/ca.pem"), both);
}

TEST_F(AuthorityFilesTest, ACertificateOfTheSameIdentityIsRenewed) {
  const auto former = Issue(worker_);
  ASSERT_TRUE(former.ok()) << former.status();
  const auto renewed = Issue(worker_);
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_NE(renewed->serial, former->serial);
  EXPECT_EQ(ReadCertificate(*ReadTextFile(output_ + "/cert.pem"))->serial, renewed->serial);
  EXPECT_TRUE(CheckTlsDirectory(output_, now_).ok());
  EXPECT_THAT(NamesIn(output_), ElementsAre("ca.pem", "cert.pem", "former.pem", "key.pem"));
  EXPECT_EQ(ModeOf(output_ + "/key.pem"), 0600);
}

// Renewals while every clock is ahead once replaced the only pair that was valid afterwards.
TEST_F(AuthorityFilesTest, APairThatIsValidOutlivesRenewalsOfAClockThatIsAhead) {
  const auto issue = [&](int64_t now) {
    return IssueTlsDirectory(authority_, worker_, output_, now);
  };
  const auto used = [&](int64_t now) {
    const auto usable = ReadUsableTls(TlsFilesIn(output_), now);
    return usable.ok() ? ReadCertificate(usable->contents.certificate)->serial
                       : std::string(Message(usable.status()));
  };
  const std::string first = issue(now_)->serial;
  const int64_t ahead = now_ + kTestDay * 3 / 4;
  const std::string second = issue(ahead)->serial, third = issue(ahead + 60)->serial;
  EXPECT_EQ(ModeOf(output_ + "/former.pem"), 0600);
  EXPECT_EQ(used(ahead + 60), third);
  EXPECT_EQ(used(now_), first);
  const auto fault = ReadUsableTls(TlsFilesIn(output_), now_)->fault;
  EXPECT_THAT(ReasonOf(fault), HasSubstr("is not valid before"));
  EXPECT_EQ(CheckTlsDirectory(output_, now_)->identity,
            (Identity{"lab", Role::kWorker, "worker-0"}));
  // Renewed anew, the pair in use is that of the files.
  const std::string fourth = issue(now_)->serial;
  EXPECT_EQ(used(now_), fourth);
  EXPECT_THAT(used(now_ + 4 * kTestDay), HasSubstr("expired"));
}

TEST_F(AuthorityFilesTest, AFormerPairOfAnotherHolderOrAuthorityIsNotUsed) {
  const int64_t ahead = now_ + 30 * kTestDay;
  ASSERT_TRUE(IssueTlsDirectory(authority_, worker_, output_, ahead).ok());
  const auto refused = [&](const CertifiedKey& former) {
    WriteTextFile(output_ + "/former.pem", former.certificate + former.key);
    return !CheckTlsDirectory(output_, now_).ok();
  };
  const Authority authority = *ReadAuthority(authority_);
  const auto pair = [&](const std::string& name) {
    return *SignCertificate(authority.signer, {.common_name = name,
                                               .uris = {"spiffe://lab/worker/" + name},
                                               .not_before = now_,
                                               .not_after = now_ + kTestDay});
  };
  EXPECT_TRUE(refused(pair("worker-1")));
  EXPECT_TRUE(refused(TestAuthority("lab").Issue(Role::kWorker, "worker-0")));
  EXPECT_TRUE(refused({pair("worker-0").certificate, pair("worker-0").key}));
  EXPECT_TRUE(refused({pair("worker-0").certificate, ""}));
  EXPECT_TRUE(refused({"", pair("worker-0").key}));
  EXPECT_FALSE(refused(pair("worker-0")));
}

TEST_F(AuthorityFilesTest, ARenewalThatWasCutShortIsRepaired) {
  ASSERT_TRUE(Issue(worker_).ok());
  // As after a crash between the key and the certificate.
  WriteTextFile(output_ + "/key.pem", TestAuthority("lab").Issue(Role::kWorker, "w").key);
  WriteTextFile(output_ + "/cert.pem.new", "half");
  ASSERT_FALSE(CheckTlsDirectory(output_, now_).ok());
  const auto repaired = Issue(worker_);
  EXPECT_TRUE(repaired.ok()) << repaired.status();
  EXPECT_TRUE(CheckTlsDirectory(output_, now_).ok());
  EXPECT_THAT(NamesIn(output_), ElementsAre("ca.pem", "cert.pem", "key.pem"));
}

TEST_F(AuthorityFilesTest, SeveralCallsAtATimeLeaveFilesThatBelongTogether) {
  constexpr int kRounds = 12, kThreads = 4;
  for (int round = 0; round < kRounds; ++round) {
    if (round % 4 == 0) std::filesystem::remove_all(output_);
    std::barrier begin(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        begin.arrive_and_wait();
        const auto issued = Issue(worker_);
        EXPECT_TRUE(issued.ok()) << issued.status();
      });
    }
    for (std::thread& thread : threads) thread.join();
    const auto files = CheckTlsDirectory(output_, now_);
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_THAT(NamesIn(output_), ElementsAre("ca.pem", "cert.pem", "former.pem", "key.pem"));
  }
}

TEST_F(AuthorityFilesTest, AReplacementThatWasCutShortIsFinished) {
  ASSERT_TRUE(Issue(worker_).ok());
  EXPECT_TRUE(FinishTlsDirectory(output_).ok());
  EXPECT_TRUE(CheckTlsDirectory(output_, now_).ok());
  const auto next =
      SignCertificate(ReadAuthority(authority_)->signer, {.common_name = "worker-0",
                                                          .uris = {"spiffe://lab/worker/worker-0"},
                                                          .not_before = now_,
                                                          .not_after = now_ + kTestDay});
  // As after a crash between the key and the certificate.
  WriteTextFile(output_ + "/key.pem", next->key);
  WriteTextFile(output_ + "/cert.pem.new", next->certificate);
  WriteTextFile(output_ + "/ca.pem.new", *ReadTextFile(output_ + "/ca.pem"));
  ASSERT_FALSE(CheckTlsDirectory(output_, now_).ok());
  EXPECT_TRUE(FinishTlsDirectory(output_ + "/").ok());
  EXPECT_TRUE(CheckTlsDirectory(output_, now_).ok());
  EXPECT_EQ(*ReadTextFile(output_ + "/cert.pem"), next->certificate);
  EXPECT_THAT(NamesIn(output_), ElementsAre("ca.pem", "cert.pem", "key.pem"));
}

TEST_F(AuthorityFilesTest, OnlyAReplacementThatWasCutShortIsFinished) {
  EXPECT_TRUE(FinishTlsDirectory(directory_.Child("absent")).ok());
  ASSERT_TRUE(Issue(worker_).ok());
  const std::string certificate = *ReadTextFile(output_ + "/cert.pem");
  const CertifiedKey other = TestAuthority("lab").Issue(Role::kWorker, "worker-0");
  // As after a crash before the key was replaced.
  WriteTextFile(output_ + "/cert.pem.new", other.certificate);
  EXPECT_TRUE(FinishTlsDirectory(output_).ok());
  EXPECT_EQ(*ReadTextFile(output_ + "/cert.pem"), certificate);
  // Neither the certificate nor its successor has this key.
  WriteTextFile(output_ + "/key.pem", TestAuthority("lab").Issue(Role::kWorker, "w").key);
  EXPECT_TRUE(FinishTlsDirectory(output_).ok());
  EXPECT_EQ(*ReadTextFile(output_ + "/cert.pem"), certificate);
  WriteTextFile(output_ + "/cert.pem.new", "half");
  EXPECT_TRUE(FinishTlsDirectory(output_).ok());
  EXPECT_EQ(*ReadTextFile(output_ + "/cert.pem"), certificate);
}

TEST_F(AuthorityFilesTest, OnlyContentsThatTheirUsersAcceptAreStored) {
  const Authority authority = *ReadAuthority(authority_);
  const CertifiedKey foreign = TestAuthority("lab").Issue(Role::kWorker, "worker-0");
  const auto unsigned_one =
      StoreTlsDirectory(output_, {"lab", Role::kWorker, "worker-0"},
                        {authority.trusted, foreign.certificate, foreign.key}, now_);
  EXPECT_EQ(unsigned_one.status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(output_));
  ASSERT_TRUE(Issue(worker_).ok());
  const TlsContents contents = *ReadTlsContents(TlsFilesIn(output_));
  const auto other =
      StoreTlsDirectory(directory_.Child("w"), {"lab", Role::kWorker, "w"}, contents, now_);
  EXPECT_THAT(ReasonOf(other.status()),
              HasSubstr("is that of spiffe://lab/worker/worker-0, not of spiffe://lab/worker/w"));
  EXPECT_FALSE(std::filesystem::exists(directory_.Child("w")));
}

TEST_F(AuthorityFilesTest, AKeyOfAnAuthorityThatAllUsersMayReadIsWarnedOf) {
  const std::string key = authority_ + "/authority.key";
  for (const auto& [mode, warns] : {std::pair{0600, false}, {0640, false}, {0644, true}}) {
    ASSERT_EQ(chmod(key.c_str(), static_cast<mode_t>(mode)), 0);
    testing::internal::CaptureStderr();
    EXPECT_TRUE(Issue(worker_).ok());
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(log.find(key + ": every user of this machine may read") != log.npos, warns) << log;
  }
}

TEST_F(AuthorityFilesTest, AnAuthorityThatCannotSignIsNotRead) {
  const auto authority = ReadAuthority(authority_);
  ASSERT_TRUE(authority.ok()) << authority.status();
  EXPECT_EQ(authority->cluster, "lab");
  EXPECT_EQ(authority->hash, *CertificateHash(authority->trusted));
  EXPECT_GT(authority->not_after, now_ + 3649 * kTestDay);
  const auto refuse = [&](const std::string& reason) {
    const auto read = ReadAuthority(authority_);
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << reason;
    EXPECT_THAT(ReasonOf(read.status()), HasSubstr(reason));
  };
  WriteTextFile(authority_ + "/authority.key", MakeAuthority("lab", now_)->key);
  refuse("the authority's key does not belong to its certificate");
  WriteTextFile(authority_ + "/authority.key", "");
  refuse("authority.key: the file is empty");
  std::filesystem::remove(authority_ + "/authority.key");
  refuse("authority.key: cannot be read");
  const CertifiedKey worker = TestAuthority("lab").Issue(Role::kWorker, "w");
  WriteTextFile(authority_ + "/authority.key", worker.key);
  WriteTextFile(authority_ + "/authority.pem", worker.certificate);
  refuse("the certificate is not an authority's");
}

TEST_F(AuthorityFilesTest, ADirectoryOfAnotherIdentityIsRefused) {
  ASSERT_TRUE(Issue(worker_).ok());
  const std::string certificate = *ReadTextFile(output_ + "/cert.pem");
  const auto other = Issue({.role = Role::kOperator, .name = "worker-0", .days = 1});
  EXPECT_EQ(other.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(ReasonOf(other.status()),
              HasSubstr("is not a certificate of spiffe://lab/operator/worker-0"));
  EXPECT_EQ(*ReadTextFile(output_ + "/cert.pem"), certificate);
  // Nor is a directory with anything else.
  const std::string full = directory_.Child("full");
  std::filesystem::create_directory(full);
  WriteTextFile(full + "/notes", "x");
  EXPECT_EQ(IssueTlsDirectory(authority_, worker_, full, now_).status().code(),
            StatusCode::kAlreadyExists);
  EXPECT_THAT(NamesIn(full), ElementsAre("notes"));
}

TEST_F(AuthorityFilesTest, ABadRequestWritesNothing) {
  const auto refuse = [&](const IssueRequest& request, const std::string& reason) {
    const auto issued = Issue(request);
    EXPECT_EQ(issued.status().code(), StatusCode::kInvalidArgument) << reason;
    EXPECT_THAT(ReasonOf(issued.status()), HasSubstr(reason));
    EXPECT_FALSE(std::filesystem::exists(output_));
  };
  refuse({.role = Role::kViewer, .name = "a/b", .days = 1}, "the name is \"a/b\"");
  refuse({.role = Role::kViewer, .name = "", .days = 1}, "the name is \"\"");
  refuse({.role = Role::kViewer, .name = "w", .days = 1, .hosts = {"node"}},
         "the role viewer has no use for the host node");
  refuse({.role = Role::kCoordinator, .name = "c", .days = 1, .hosts = {"a b"}},
         "is no IP address and no DNS name");
  refuse({.role = Role::kViewer, .name = "v", .days = 3651}, "beyond its authority");
  EXPECT_EQ(
      ReasonOf(Issue({.role = Role::kWorker, .name = "w", .days = 1, .hosts = {"fo\no"}}).status()),
      "the host \"fo\\no\" is no IP address and no DNS name");
}

TEST_F(AuthorityFilesTest, AnUnusableAuthorityIsRefusedByName) {
  const auto refuse = [&](const std::string& reason) {
    const auto issued = Issue(worker_);
    EXPECT_EQ(issued.status().code(), StatusCode::kInvalidArgument) << reason;
    EXPECT_THAT(ReasonOf(issued.status()), HasSubstr(reason));
    EXPECT_FALSE(std::filesystem::exists(output_));
  };
  const std::string key = *ReadTextFile(authority_ + "/authority.key");
  const std::string certificate = *ReadTextFile(authority_ + "/authority.pem");
  WriteTextFile(authority_ + "/ca.pem", "");
  refuse("ca.pem: the file is empty");
  WriteTextFile(authority_ + "/ca.pem", TestAuthority("lab").pem());
  refuse("no authority vouches");
  WriteTextFile(authority_ + "/ca.pem", certificate);
  WriteTextFile(authority_ + "/authority.key", key.substr(0, 60));
  refuse("no whole private key");
  WriteTextFile(authority_ + "/authority.key", key);
  WriteTextFile(authority_ + "/authority.pem", certificate.substr(0, 60));
  refuse("is not a whole certificate");
  std::filesystem::remove(authority_ + "/authority.pem");
  refuse("authority.pem: cannot be read");
}

}  // namespace
}  // namespace troupe

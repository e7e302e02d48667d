#include "base/security/tls_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/security/test_certificates.h"
#include "base/temporary_directory.h"
#include "base/text_file.h"

namespace troupe {
namespace {

using testing::HasSubstr;

int64_t ModificationTime(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return info.st_mtime;
}

class TlsWatchTest : public testing::Test {
 protected:
  TlsFiles MakeFiles() const {
    WriteTlsDirectory(directory_.path(), authority_.pem(), worker_);
    return *CheckTlsDirectory(directory_.path(), now_);
  }

  // Expects the contents that gRPC reads.
  void ExpectUsed(const TlsWatch& watch, const std::string& authorities,
                  const CertifiedKey& holder) const {
    EXPECT_EQ(*ReadTextFile(watch.authority_path()), authorities);
    EXPECT_EQ(*ReadTextFile(watch.identity_path()), holder.certificate + "\n" + holder.key);
  }

  const int64_t now_ = std::time(nullptr);
  const TestAuthority authority_{"lab"};
  const CertifiedKey worker_ = authority_.Issue(Role::kWorker, "worker-0");
  const CertifiedKey renewed_ = authority_.Issue(Role::kWorker, "worker-0");
  const TemporaryDirectory directory_;
  const TlsFiles paths_ = TlsFilesIn(directory_.path());
  const TlsFiles files_ = MakeFiles();
};

TEST_F(TlsWatchTest, TheFirstContentsAreThereAtOnce) {
  const TlsWatch watch(files_);
  ExpectUsed(watch, authority_.pem(), worker_);
}

TEST_F(TlsWatchTest, NewContentsReplaceTheFormerOnes) {
  TlsWatch watch(files_);
  const int64_t before = ModificationTime(watch.identity_path());
  const TestAuthority second("lab");
  WriteTlsDirectory(directory_.path(), second.pem() + authority_.pem(), renewed_);
  EXPECT_TRUE(watch.Read(now_).ok());
  ExpectUsed(watch, second.pem() + authority_.pem(), renewed_);
  // gRPC recognizes a replacement between two of its reads by this time.
  EXPECT_NE(ModificationTime(watch.identity_path()), before);
  EXPECT_NE(before, 0);
}

TEST_F(TlsWatchTest, FilesThatAreHalfWrittenLeaveTheFormerContents) {
  TlsWatch watch(files_);
  const auto expect_former = [&](const std::string& reason) {
    EXPECT_THAT(std::string(Message(watch.Read(now_))), HasSubstr(reason));
    ExpectUsed(watch, authority_.pem(), worker_);
  };
  WriteTextFile(paths_.key, renewed_.key);  // the first half of a rotation
  expect_former("does not belong");
  WriteTextFile(paths_.certificate, renewed_.certificate.substr(0, 300));
  expect_former("is not a whole certificate");
  WriteTextFile(paths_.certificate, "");
  expect_former("is empty");
  std::filesystem::remove(paths_.certificate);
  expect_former("cannot be read");
  WriteTextFile(paths_.certificate, renewed_.certificate);
  WriteTextFile(paths_.authority, authority_.pem().substr(0, 200));
  expect_former("is not a whole certificate");
  WriteTextFile(paths_.authority, "");
  expect_former("is empty");
  WriteTextFile(paths_.authority, TestAuthority("lab").pem());
  expect_former("no authority vouches");
  WriteTextFile(paths_.authority, authority_.pem());
  EXPECT_TRUE(watch.Read(now_).ok());
  ExpectUsed(watch, authority_.pem(), renewed_);
}

TEST_F(TlsWatchTest, ExpiredFilesLeaveTheFormerContents) {
  TlsWatch watch(files_);
  WriteTlsDirectory(directory_.path(), authority_.pem(), renewed_);
  EXPECT_FALSE(watch.Read(now_ + 2 * kTestDay).ok());
  ExpectUsed(watch, authority_.pem(), worker_);
}

TEST_F(TlsWatchTest, AnotherIdentityNeedsANewProcess) {
  TlsWatch watch(files_);
  WriteTlsDirectory(directory_.path(), authority_.pem(), authority_.Issue(Role::kOperator, "o"));
  EXPECT_THAT(std::string(Message(watch.Read(now_))),
              HasSubstr("the identity is spiffe://lab/operator/o, and this process began as "
                        "spiffe://lab/worker/worker-0"));
  ExpectUsed(watch, authority_.pem(), worker_);
}

TEST_F(TlsWatchTest, AnErrorIsLoggedOnceUntilItChanges) {
  TlsWatch watch(files_);
  WriteTextFile(paths_.key, "");
  testing::internal::CaptureStderr();
  EXPECT_FALSE(watch.Read(now_).ok());
  EXPECT_FALSE(watch.Read(now_).ok());
  WriteTextFile(paths_.key, worker_.key);
  EXPECT_TRUE(watch.Read(now_).ok());
  const std::string log = testing::internal::GetCapturedStderr();
  const std::string line = "the former certificates stay in use: " + paths_.key;
  const size_t first = log.find(line);
  ASSERT_NE(first, log.npos) << log;
  EXPECT_EQ(log.find(line, first + 1), log.npos) << log;
  EXPECT_NE(log.find("the certificates in use are those of the files again", first), log.npos)
      << log;
}

TEST_F(TlsWatchTest, ItsThreadReadsTheFilesByItself) {
  const TlsWatch watch(files_);
  WriteTlsDirectory(directory_.path(), authority_.pem(), renewed_);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const std::string expected = renewed_.certificate + "\n" + renewed_.key;
  while (*ReadTextFile(watch.identity_path()) != expected &&
         std::chrono::steady_clock::now() < end) {
  }
  ExpectUsed(watch, authority_.pem(), renewed_);
}

TEST_F(TlsWatchTest, TheFormerPairIsUsedWhileThatOfTheFilesIsNotValid) {
  const int64_t ahead = now_ + kTestDay * 3 / 4;
  const CertifiedKey of_future = authority_.IssueWith({"spiffe://lab/worker/worker-0"},
                                                      ahead - kMostClockSkew, ahead + kTestDay);
  WriteTextFile(FormerPathOf(files_), worker_.certificate + worker_.key);
  WriteTlsDirectory(directory_.path(), authority_.pem(), of_future);
  TlsWatch watch(files_);  // a process that starts when the clock is right again
  ExpectUsed(watch, authority_.pem(), worker_);
  EXPECT_TRUE(watch.Read(ahead).ok());
  ExpectUsed(watch, authority_.pem(), of_future);
  testing::internal::CaptureStderr();
  for (int second = 0; second < 5; ++second) EXPECT_FALSE(watch.Read(now_ + second).ok());
  const std::string log = testing::internal::GetCapturedStderr();
  ExpectUsed(watch, authority_.pem(), worker_);
  const std::string line = "the former certificates stay in use: ";
  ASSERT_NE(log.find(line), log.npos) << log;
  EXPECT_EQ(log.find(line, log.find(line) + 1), log.npos) << "once for these files: " << log;
  WriteTlsDirectory(directory_.path(), authority_.pem(), renewed_);
  EXPECT_TRUE(watch.Read(now_).ok());
  ExpectUsed(watch, authority_.pem(), renewed_);
}

TEST(MemoryFile, ItsContentsAreReplacedUnderAReader) {
  MemoryFile file;
  ASSERT_TRUE(file.Replace("one").ok());
  std::ifstream reader(file.path());
  ASSERT_TRUE(file.Replace("second").ok());
  std::string text;
  reader >> text;
  EXPECT_EQ(text, "one");
  EXPECT_EQ(*ReadTextFile(file.path()), "second");
}

TEST(MemoryFile, ItIsEmptyAfterItsLastUseAndItsNumberIsUsedAgain) {
  std::string path;
  {
    MemoryFile file;
    path = file.path();
    ASSERT_TRUE(file.Replace("secret").ok());
  }
  EXPECT_EQ(*ReadTextFile(path), "");
  const MemoryFile next;
  EXPECT_EQ(next.path(), path);
}

}  // namespace
}  // namespace troupe

#include "base/security/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <string>

#include "base/security/test_certificates.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class TlsFilesTest : public testing::Test {
 protected:
  TlsFilesTest() { WriteTlsDirectory(directory_.path(), authority_.pem(), worker_); }

  std::string Error(int64_t now) const {
    const auto files = CheckTlsDirectory(directory_.path(), now);
    EXPECT_TRUE(files.ok() || files.status().code() == StatusCode::kInvalidArgument)
        << files.status();
    return std::string(Message(files.status()));
  }
  std::string Error() const { return Error(now_); }

  const int64_t now_ = std::time(nullptr);
  const TestAuthority authority_{"lab"};
  const CertifiedKey worker_ = authority_.Issue(Role::kWorker, "worker-0");
  const TemporaryDirectory directory_;
  const TlsFiles paths_ = TlsFilesIn(directory_.path());
};

TEST_F(TlsFilesTest, AGoodDirectoryGivesPathsAndIdentity) {
  const auto files = CheckTlsDirectory(directory_.path(), now_);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->authority, directory_.Child("ca.pem"));
  EXPECT_EQ(files->certificate, directory_.Child("cert.pem"));
  EXPECT_EQ(files->key, directory_.Child("key.pem"));
  EXPECT_EQ(files->identity, (Identity{"lab", Role::kWorker, "worker-0"}));
}

TEST_F(TlsFilesTest, AnAbsentEmptyOrUnreadableFileIsNamed) {
  for (const std::string& path : {paths_.authority, paths_.certificate, paths_.key}) {
    WriteTlsDirectory(directory_.path(), authority_.pem(), worker_);
    WriteTextFile(path, "");
    EXPECT_EQ(Error(), path + ": the file is empty");
    std::filesystem::remove(path);
    EXPECT_THAT(Error(), StartsWith(path + ": cannot be read: "));
    EXPECT_THAT(Error(), HasSubstr("No such file"));
    // A FIFO must not block.
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_THAT(Error(), StartsWith(path + ": cannot be read: "));
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    EXPECT_THAT(Error(), StartsWith(path + ": cannot be read: "));
    std::filesystem::remove(path);
    WriteTextFile(path, std::string(2 << 20, 'x'));
    EXPECT_THAT(Error(), StartsWith(path + ": cannot be read: "));
  }
  const auto absent = CheckTlsDirectory(directory_.Child("absent"), now_);
  EXPECT_EQ(absent.status().code(), StatusCode::kInvalidArgument);
}

TEST_F(TlsFilesTest, AHalfWrittenOrForeignFileIsNamed) {
  for (const std::string& path : {paths_.authority, paths_.certificate, paths_.key}) {
    const std::string& whole = path == paths_.authority     ? authority_.pem()
                               : path == paths_.certificate ? worker_.certificate
                                                            : worker_.key;
    for (const std::string& text : {whole.substr(0, whole.size() / 2), std::string("hello\n"),
                                    std::string("\0\xff\x80", 3)}) {
      WriteTlsDirectory(directory_.path(), authority_.pem(), worker_);
      WriteTextFile(path, text);
      EXPECT_THAT(Error(), StartsWith(path + ": ")) << text;
    }
  }
}

TEST_F(TlsFilesTest, AKeyOfAnotherCertificateIsRefused) {
  WriteTextFile(paths_.key, authority_.Issue(Role::kWorker, "worker-0").key);
  EXPECT_EQ(Error(), paths_.key + " with " + paths_.certificate +
                         ": the key does not belong to the certificate");
}

TEST_F(TlsFilesTest, AnExpiredOrEarlyCertificateIsRefused) {
  EXPECT_THAT(Error(now_ + 2 * kTestDay), StartsWith(paths_.certificate + ": the certificate of "));
  EXPECT_THAT(Error(now_ + 2 * kTestDay), HasSubstr("expired at"));
  EXPECT_THAT(Error(now_ - kTestDay), HasSubstr("is not valid before"));
}

TEST_F(TlsFilesTest, ACertificateOfAForeignAuthorityIsRefused) {
  WriteTextFile(paths_.authority, TestAuthority("lab").pem());
  EXPECT_THAT(Error(), StartsWith(paths_.certificate + " with " + paths_.authority +
                                  ": no authority vouches for the certificate"));
}

TEST_F(TlsFilesTest, ACertificateWithoutOrWithTwoIdentitiesIsRefused) {
  WriteTlsDirectory(directory_.path(), authority_.pem(),
                    authority_.IssueWith({}, now_, now_ + kTestDay));
  EXPECT_THAT(Error(), StartsWith(paths_.certificate + ": the certificate has no identity"));
  WriteTlsDirectory(directory_.path(), authority_.pem(),
                    authority_.IssueWith({"spiffe://lab/viewer/a", "spiffe://lab/operator/a"}, now_,
                                         now_ + kTestDay));
  EXPECT_THAT(Error(), HasSubstr("has 2 identities"));
}

TEST_F(TlsFilesTest, SymbolicLinksAreFollowedAsVolumesOfSecretsNeed) {
  const TemporaryDirectory volume;
  for (const char* name : {"ca.pem", "cert.pem", "key.pem"}) {
    ASSERT_EQ(symlink(directory_.Child(name).c_str(), volume.Child(name).c_str()), 0);
  }
  EXPECT_TRUE(CheckTlsDirectory(volume.path(), now_).ok());
}

TEST_F(TlsFilesTest, AKeyThatAllUsersMayReadIsWarnedOf) {
  for (const auto& [mode, warns] : {std::pair{0600, false}, {0640, false}, {0644, true}}) {
    ASSERT_EQ(chmod(paths_.key.c_str(), static_cast<mode_t>(mode)), 0);
    testing::internal::CaptureStderr();
    EXPECT_EQ(Error(), "");
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(log.find(paths_.key + ": every user of this machine may read") != log.npos, warns)
        << log;
  }
}

}  // namespace
}  // namespace troupe

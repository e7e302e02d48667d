#include "base/security/former_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "base/security/authority_files.h"
#include "base/security/certificate.h"
#include "base/security/test_certificates.h"
#include "base/temporary_directory.h"
#include "base/text_file.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// A TLS directory whose certificates are valid for a day. Times are hours after the beginning of
// the test.
class FormerPairsTest : public testing::Test {
 protected:
  FormerPairsTest() {
    EXPECT_TRUE(WriteNewAuthority(authority_, "lab", now_).ok());
    EXPECT_TRUE(WriteNewAuthority(other_authority_, "lab", now_).ok());
  }

  int64_t At(double hour) const { return now_ + static_cast<int64_t>(hour * 3600); }

  // Renews the certificate by a clock that shows `hour`, and returns its serial number.
  std::string Issue(double hour) const { return IssueBy(authority_, hour); }
  std::string IssueBy(const std::string& authority, double hour) const {
    const auto facts = IssueTlsDirectory(authority, {.role = Role::kWorker, .name = "w", .days = 1},
                                         output_, At(hour));
    EXPECT_TRUE(facts.ok()) << facts.status();
    return facts.ok() ? facts->serial : "";
  }

  // Returns the serial number of the certificate that is used then; or why none is.
  std::string Used(double hour) const {
    const auto usable = ReadUsableTls(files_, At(hour));
    return usable.ok() ? ReadCertificate(usable->contents.certificate)->serial
                       : std::string(Message(usable.status()));
  }
  std::vector<TlsContents> Held() const {
    return ReadFormerPairs(files_, *ReadTextFile(files_.authority));
  }

  const int64_t now_ = std::time(nullptr);
  const TemporaryDirectory directory_;
  const std::string authority_ = directory_.Child("authority");
  const std::string other_authority_ = directory_.Child("other");
  const std::string output_ = directory_.Child("tls");
  const TlsFiles files_ = TlsFilesIn(output_);
};

// The second renewal once took the first pair for one that has expired.
TEST_F(FormerPairsTest, APairOutlivesTwoRenewalsOfAClockThatIsAhead) {
  const std::string first = Issue(0);
  Issue(18);
  const std::string third = Issue(35);
  EXPECT_EQ(Used(35), third);
  EXPECT_EQ(Used(1), first);
  const std::string fourth = Issue(1);
  EXPECT_EQ(Used(1), fourth);
  EXPECT_EQ(Used(35), third);
}

TEST_F(FormerPairsTest, ATimeKeepsAPairWhereverTheClockHasBeenWithinItsLife) {
  for (const std::vector<double>& hours :
       std::vector<std::vector<double>>{{18, 17, 16, 15, 14, 13, 12},
                                        {6, 12, 18, 24},
                                        {23, 1, 22, 2, 21, 3, 20, 4},
                                        {12, 12.1, 12.2, 12.3, 12.4, 12.5},
                                        {24, 1, 2, 3, 4, 5, 6, 7},
                                        {18, 35, 52}}) {
    const std::string first = Issue(0);
    for (const double hour : hours) {
      const std::string newest = Issue(hour);
      EXPECT_EQ(Used(hour), newest);
      // No other certificate of this sequence is valid at this time.
      EXPECT_EQ(Used(0.5), first) << "after a renewal at " << hour << " h of " << hours.size();
      EXPECT_LE(Held().size(), kMostFormerPairs);
    }
    std::filesystem::remove_all(output_);
  }
}

TEST_F(FormerPairsTest, ARowOfRenewalsKeepsTheNewestPairsOnly) {
  std::string before = Issue(0);
  for (const double interval : {16.0, 1.0}) {
    for (int i = 1; i <= 8; ++i) {
      const double hour = interval == 16 ? i * interval : 8 * 16 + i * interval;
      const std::string newest = Issue(hour);
      EXPECT_LE(Held().size(), kMostFormerPairs) << hour;
      EXPECT_EQ(Used(hour - interval / 2), before) << hour;
      before = newest;
    }
  }
  EXPECT_EQ(ReadCertificate(Held().back().certificate)->not_before, At(5 * 16) - kMostClockSkew)
      << "the oldest ones have left";
}

// A pair that nobody accepts once stayed because of its time, and the only useful one was lost.
TEST_F(FormerPairsTest, APairWithoutAnAuthorityThatVouchesForItMakesRoom) {
  Issue(0);
  Issue(0.1);
  const std::string first = IssueBy(other_authority_, 1);
  IssueBy(other_authority_, 19);
  EXPECT_EQ(Used(2), first);
  EXPECT_THAT(Held(), SizeIs(1));
}

TEST_F(FormerPairsTest, AnErrorStatesWhyNoFormerPairIsUsed) {
  Issue(0);
  EXPECT_THAT(Used(30), Not(HasSubstr("former.pem")));
  WriteTextFile(FormerPathOf(files_), "damaged");
  EXPECT_THAT(Used(30), AllOf(HasSubstr("cert.pem: "), HasSubstr("no former pair can be used"),
                              HasSubstr("former.pem: holds no certificate with its key")));
  WriteTextFile(FormerPathOf(files_), "");
  EXPECT_THAT(Used(30), HasSubstr("former.pem: the file is empty"));
  std::filesystem::remove(FormerPathOf(files_));
  Issue(18);
  EXPECT_THAT(Used(80), HasSubstr("used instead: " + FormerPathOf(files_) + ": "));
  EXPECT_EQ(Used(18), ReadCertificate(*ReadTextFile(files_.certificate))->serial);
}

TEST_F(FormerPairsTest, WhatIsNoPairIsNotRead) {
  Issue(0);
  const std::string certificate = *ReadTextFile(files_.certificate);
  const std::string key = *ReadTextFile(files_.key);
  for (const std::string& text : {std::string("\n"), certificate, certificate + certificate,
                                  certificate + key.substr(0, key.size() / 2)}) {
    WriteTextFile(FormerPathOf(files_), text);
    EXPECT_THAT(Held(), IsEmpty()) << text;
  }
  const std::string parameters =
      "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
  WriteTextFile(FormerPathOf(files_), certificate + "\n" + parameters + key + "\n" + certificate +
                                          certificate + key + certificate);
  const std::vector<TlsContents> held = Held();
  ASSERT_EQ(held.size(), 2u);
  const std::string authorities = *ReadTextFile(files_.authority);
  EXPECT_EQ(held[0], (TlsContents{authorities, certificate, parameters + key}));
  EXPECT_EQ(held[1], (TlsContents{authorities, certificate + certificate, key}));
}

}  // namespace
}  // namespace troupe

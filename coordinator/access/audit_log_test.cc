#include "coordinator/access/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

#include "base/audit/audit_file.h"
#include "base/store/memory_store.h"
#include "base/temporary_directory.h"
#include "coordinator/state/catalog.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SetClock final : public Clock {
 public:
  MonotonicTime Now() const override { return {}; }
  int64_t WallNanoseconds() const override { return wall_nanoseconds; }
  int64_t wall_nanoseconds = 1'000'000'000'000;
};

class AuditLogTest : public ::testing::Test {
 protected:
  std::unique_ptr<AuditLog> Open(int64_t most_file_bytes = AuditLog::kMostFileBytes) {
    auto log = AuditLog::Open(path_, clock_, most_file_bytes);
    EXPECT_TRUE(log.ok()) << ToString(log.status());
    return log.ok() ? *std::move(log) : nullptr;
  }

  std::string Text() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  // The records of the file, whose chain is checked.
  std::vector<nlohmann::json> Records() const {
    std::vector<nlohmann::json> records;
    std::istringstream lines(Text());
    AuditHead head;
    for (std::string line; std::getline(lines, line);) {
      const Status follows = FollowAuditLine(line, &head);
      EXPECT_TRUE(follows.ok()) << ToString(follows);
      records.push_back(nlohmann::json::parse(line));
    }
    return records;
  }

  static AuditRecord Record(const std::string& target) {
    return {.identity = "spiffe://lab/operator/ann", .rpc = "/a/b", .target = target};
  }

  // Returns the chain of all files, which must be whole.
  AuditedFile Checked() {
    const auto audited = CheckAuditLog(files_, path_);
    EXPECT_TRUE(audited.ok()) << ToString(audited.status());
    EXPECT_TRUE(audited->error.ok()) << ToString(audited->error);
    return *audited;
  }

  PosixFileSystem files_;
  TemporaryDirectory directory_;
  const std::string path_ = directory_.Child("audit.log");
  SetClock clock_;
};

TEST_F(AuditLogTest, OnlyItsOwnerMayReadIt) {
  Open();
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(AuditLogTest, ALogThatIsOpenedAgainContinuesItsChain) {
  ASSERT_TRUE(Open()->Append(Record("jobs/a")).ok());
  ASSERT_TRUE(Open()->Append(Record("jobs/b")).ok());
  const auto records = Records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].at("target"), "jobs/a");
  EXPECT_EQ(records[0].at("wall_time_ns"), clock_.wall_nanoseconds);
  EXPECT_EQ(records[1].at("target"), "jobs/b");
  EXPECT_EQ(records[1].at("sequence"), 2);
}

TEST_F(AuditLogTest, AnIncompleteLastLineIsCutWithARecordOfThat) {
  ASSERT_TRUE(Open()->Append(Record("jobs/a")).ok());
  std::ofstream(path_, std::ios::app) << R"({"sequence":2,"wall)";
  ASSERT_TRUE(Open()->Append(Record("jobs/b")).ok());
  const auto records = Records();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[1].at("outcome"), "REPAIRED");
  EXPECT_THAT(records[1].at("reason"), HasSubstr("19 bytes of an incomplete record"));
  EXPECT_EQ(records[2].at("target"), "jobs/b");
}

TEST_F(AuditLogTest, AnIncompleteFirstLineIsCutToo) {
  std::ofstream(path_) << "{";
  Open();
  const auto records = Records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].at("outcome"), "REPAIRED");
}

// With this limit each file has two records: it is full after the second.
constexpr int64_t kTwoRecords = 400;

TEST_F(AuditLogTest, TheChainGoesOnInANewFileWhenOneIsFull) {
  for (int i = 0; i < 4; ++i) {
    const auto log = Open(kTwoRecords);  // also across restarts
    for (int j = 0; j < 3; ++j) ASSERT_TRUE(log->Append(Record("jobs/a")).ok());
  }
  EXPECT_EQ(Checked().head.sequence, 12);
  const auto full = FullAuditFiles(files_, path_);
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_THAT(*full,
              ElementsAre(path_ + ".2", path_ + ".4", path_ + ".6", path_ + ".8", path_ + ".10"));
  for (const std::string& file : *full) {
    struct stat info {};
    ASSERT_EQ(stat(file.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  ASSERT_TRUE(files_.Remove(full->at(1)).ok());
  const auto removed = CheckAuditLog(files_, path_);
  ASSERT_TRUE(removed.ok());
  EXPECT_THAT(ToString(removed->error), HasSubstr(path_ + ".6: line 1: "));
}

// A crash between two files leaves the same as somebody who removes the newest records.
TEST_F(AuditLogTest, AFileThatIsMissingBehindFullOnesStatesThatAndDoesNotBreakTheChain) {
  const auto records = [this] {
    std::vector<std::string> found;
    std::istringstream lines(Text());
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::json::parse(line);
      found.push_back(record.at("outcome") == "REPAIRED" ? record.at("reason").get<std::string>()
                                                         : record.at("target").get<std::string>());
    }
    return found;
  };
  const auto missing = [](int last, const std::string& what) {
    return fmt::format(
        "records after {} may be missing: the full files end there, and the next file {}, as after "
        "a change to a new file that was cut short",
        last, what);
  };
  ASSERT_TRUE(Open()->Append(Record("jobs/a")).ok());
  ASSERT_TRUE(files_.Rename(path_, path_ + ".1").ok());
  Open();
  ASSERT_TRUE(Open()->Append(Record("jobs/b")).ok());  // it has a record now
  EXPECT_THAT(records(), ElementsAre(missing(1, "was not there"), "jobs/b"));
  EXPECT_EQ(Checked().head.sequence, 3);
  ASSERT_TRUE(files_.Rename(path_, path_ + ".3").ok());
  { const std::ofstream truncated(path_); }
  ASSERT_TRUE(Open()->Append(Record("jobs/c")).ok());
  EXPECT_THAT(records(), ElementsAre(missing(3, "had no record"), "jobs/c"));
  EXPECT_EQ(Checked().head.sequence, 5);
  ASSERT_TRUE(files_.Rename(path_, path_ + ".5").ok());
  std::ofstream(path_) << R"({"sequence":6,)";
  ASSERT_TRUE(Open()->Append(Record("jobs/d")).ok());
  EXPECT_THAT(records(), ElementsAre(missing(5, "had no record") +
                                         "; 14 bytes of an incomplete record were cut off the end",
                                     "jobs/d"));
  EXPECT_EQ(Checked().head.sequence, 7);
}

TEST_F(AuditLogTest, AFullFileThatCannotBeRenamedIsContinued) {
  ASSERT_TRUE(files_.MakeDirectory(path_ + ".2").ok());
  const auto log = Open(kTwoRecords);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(log->Append(Record("jobs/a")).ok());
  EXPECT_TRUE(FullAuditFiles(files_, path_)->empty());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(log->Append(Record("jobs/a")).ok());
  EXPECT_EQ(FullAuditFiles(files_, path_)->size(), 1u) << "it is tried again";
  EXPECT_EQ(Checked().head.sequence, 6);
}

TEST_F(AuditLogTest, ADamagedEndOfTheNewestFullFileIsReportedIfTheLogContinuesIt) {
  ASSERT_TRUE(Open()->Append(Record("jobs/a")).ok());
  const std::string whole = Text();
  ASSERT_TRUE(files_.Remove(path_).ok());
  for (const std::string& damaged :
       {std::string(), whole.substr(0, whole.size() - 1), whole + "{", "x" + whole}) {
    std::ofstream(path_ + ".1") << damaged;
    const auto log = AuditLog::Open(path_, clock_);
    EXPECT_EQ(log.status().code(), StatusCode::kDataLoss) << damaged;
    EXPECT_THAT(ToString(log.status()), HasSubstr(path_ + ".1"));
  }
}

TEST_F(AuditLogTest, ManyThreadsFillManyFilesWithOneChain) {
  const auto log = Open(kTwoRecords);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&log] {
      for (int j = 0; j < 25; ++j) EXPECT_TRUE(log->Append(Record("jobs/a")).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Checked().head.sequence, 100);
  EXPECT_EQ(FullAuditFiles(files_, path_)->size(), 49u);
}

TEST_F(AuditLogTest, ADamagedLastRecordIsReportedAndKept) {
  ASSERT_TRUE(Open()->Append(Record("jobs/a")).ok());
  std::string text = Text();
  text.replace(text.find("jobs/a"), 6, "jobs/x");
  std::ofstream(path_) << text;
  const auto log = AuditLog::Open(path_, clock_);
  EXPECT_EQ(log.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(ToString(log.status()), HasSubstr(path_));
  EXPECT_EQ(Text(), text);
}

TEST_F(AuditLogTest, TheEndOfALargeFileWithoutRecordsIsReported) {
  std::ofstream(path_) << std::string(1 << 20, 'x');
  EXPECT_EQ(AuditLog::Open(path_, clock_).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(Text().size(), size_t{1} << 20);
}

TEST_F(AuditLogTest, APathThatIsNoRegularFileIsRefused) {
  EXPECT_EQ(AuditLog::Open(directory_.path(), clock_).status().code(),
            StatusCode::kFailedPrecondition);
  ASSERT_EQ(symlink("/nowhere", path_.c_str()), 0);
  EXPECT_EQ(AuditLog::Open(path_, clock_).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(AuditLog::Open(directory_.Child("absent") + "/audit.log", clock_).ok());
}

TEST_F(AuditLogTest, AFullDiskFailsTheCallAndLeavesTheChainWhole) {
  const auto log = AuditLog::Open("/dev/full", clock_);
  EXPECT_FALSE(log.ok());  // a device

  const auto limited = Open();
  ASSERT_TRUE(limited->Append(Record("jobs/a")).ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = Text().size() + 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status failed = limited->Append(Record("jobs/b"));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(failed.ok());
  EXPECT_THAT(ToString(failed), HasSubstr(path_));
  ASSERT_TRUE(limited->Append(Record("jobs/c")).ok());
  const auto records = Records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].at("target"), "jobs/c");
}

TEST_F(AuditLogTest, ManyThreadsMakeOneChain) {
  const auto log = Open();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&log] {
      for (int j = 0; j < 50; ++j) EXPECT_TRUE(log->Append(Record("jobs/a")).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Records().size(), 200u);
}

TEST_F(AuditLogTest, ACallerWhoIsRefusedAllTheTimeCannotFillTheDisk) {
  const auto log = Open();
  for (int i = 0; i < 1000; ++i) log->AppendRefusal("spiffe://lab/viewer/eve", "/a/b", "no");
  EXPECT_EQ(Records().size(), 100u);
  clock_.wall_nanoseconds += 1'000'000'000;
  for (int i = 0; i < 2; ++i) log->AppendRefusal("spiffe://lab/viewer/eve", "/a/b", "no");
  const auto records = Records();
  ASSERT_EQ(records.size(), 102u);
  EXPECT_EQ(records[100].at("outcome"), "DENIED");
  EXPECT_EQ(records[100].at("reason"), "no (900 refusals before this one are not recorded)");
  EXPECT_EQ(records[101].at("reason"), "no");
}

TEST_F(AuditLogTest, AStrangerCannotHideTheRefusalsOfAUser) {
  const auto log = Open();
  for (int i = 0; i < 500; ++i) {
    log->AppendRefusal("anonymous", "/a/b", "no");
    log->AppendRefusal("token:1", "/a/b", "no");  // only claimed
  }
  EXPECT_EQ(Records().size(), AuditLog::kMostRefusalsOfStrangersPerMinute);
  log->AppendRefusal("spiffe://lab/viewer/eve", "/a/b", "no");
  log->AppendRefusal("token:1 ann", "/a/b", "no");
  const auto records = Records();
  ASSERT_EQ(records.size(), AuditLog::kMostRefusalsOfStrangersPerMinute + 2);
  EXPECT_EQ(records.back().at("identity"), "token:1 ann");
}

TEST_F(AuditLogTest, ALogThatIsMissingWithAnOlderCatalogStatesThat) {
  MemoryStore fresh, used, with_job, with_drain, with_token;
  for (MemoryStore* store : {&used, &with_job, &with_drain, &with_token})
    ASSERT_TRUE(AdvanceLeaderEpoch(store).ok());
  CatalogBatch job, drain, token;
  v1::JobRecord job_record;
  job_record.set_id("a");
  job.PutJob(job_record);
  v1::DrainRecord drain_record;
  drain_record.set_worker("w0");
  drain.PutDrain(drain_record);
  v1::UserTokenRecord token_record;
  token_record.mutable_token()->set_id("1");
  token.PutUserToken(token_record);
  ASSERT_TRUE(with_job.Write(job.batch(), Durability::kSynced).ok());
  ASSERT_TRUE(with_drain.Write(drain.batch(), Durability::kSynced).ok());
  ASSERT_TRUE(with_token.Write(token.batch(), Durability::kSynced).ok());
  const auto open = [this](const Store& catalog) {
    const auto log = OpenAuditLogOf(catalog, path_, clock_);
    EXPECT_TRUE(log.ok()) << ToString(log.status());
  };
  const auto reason = [this] {
    const auto records = Records();
    if (records.empty()) return std::string("none");
    EXPECT_EQ(records[0].at("outcome"), "REPAIRED");
    return records[0].at("reason").get<std::string>() + (records.size() > 1 ? " and more" : "");
  };
  open(fresh);
  EXPECT_EQ(reason(), "none");
  open(used);  // nobody has called since
  EXPECT_EQ(reason(), "none");
  std::filesystem::remove(path_);
  open(used);
  const std::string missing = "earlier records are missing: the catalog ";
  EXPECT_EQ(reason(), missing + "was used before, and the audit log was not there");
  open(used);  // it has a record now
  EXPECT_EQ(reason(), missing + "was used before, and the audit log was not there");
  for (const MemoryStore* store : {&with_job, &with_drain, &with_token}) {
    std::filesystem::resize_file(path_, 0);
    open(*store);
    EXPECT_EQ(reason(), missing + "has what calls changed, and the audit log was empty");
  }
}

}  // namespace
}  // namespace troupe

#include "cli/output/checkpoint_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/text/display_width.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::CheckpointRecord CommitAt(int64_t step, const std::string& path) {
  v1::CheckpointRecord record;
  record.set_step(step);
  record.set_path(path);
  record.set_state(v1::CHECKPOINT_STATE_COMMITTED);
  record.set_bytes(37'140'436);
  record.set_digest("sha256:" + std::string(32, 'a') + std::string(32, 'b'));
  return record;
}

TEST(CheckpointTableTest, AListHasPathsAndDigests) {
  std::vector<v1::CheckpointRecord> records = {CommitAt(20, "/h/ada/c/20"),
                                               CommitAt(40, "/other/40")};
  records[1].set_pinned(true);
  const CheckpointTableOptions options = {.style = {.directory = "/h/ada"},
                                          .has_paths_and_digests = true};
  const std::string digest = records[0].digest();
  EXPECT_EQ(CheckpointTableText(records, options),
            "STEP     SIZE  NOTES   PATH       DIGEST\n"
            "  20  37.1 MB          c/20       " +
                digest +
                "\n"
                "  40  37.1 MB  pinned  /other/40  " +
                digest + "\n");
  records[0].set_state(v1::CHECKPOINT_STATE_QUARANTINED);
  records[0].set_reason("/h/ada/c/20/rank-1 is missing");
  EXPECT_THAT(CheckpointTableText(records, options),
              HasSubstr("  20  QUARANTINED  37.1 MB          c/20       " + digest +
                        "\n  c/20/rank-1 is missing\n"));
}

TEST(CheckpointTableTest, APageOfAJobHasTheCommonDirectoryInItsTitle) {
  EXPECT_EQ(CheckpointTableText({CommitAt(20, "/h/ada/c/20"), CommitAt(40, "/h/ada/c/40")},
                                {.style = {.directory = "/h/ada"}}),
            "STEP  CHECKPOINT     SIZE  IN c/\n"
            "  20  COMMITTED   37.1 MB  20\n"
            "  40  COMMITTED   37.1 MB  40\n");
}

TEST(CheckpointTableTest, ATerminalShowsNoLineThatIsWider) {
  v1::CheckpointRecord record =
      CommitAt(100, "/checkpoints/" + std::string(63, 'n') +
                        "/step-00000100-epoch-1-attempt-1-at-1795502192641693564");
  record.set_verified(true);
  record.set_pinned(true);
  CheckpointTableOptions options = {.has_paths_and_digests = true};
  EXPECT_THAT(CheckpointTableText({record}, options), HasSubstr(record.path()));
  for (size_t columns = 50; columns <= 120; ++columns) {
    options.style.columns = columns;
    std::istringstream lines(CheckpointTableText({record}, options));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(DisplayColumns(line), columns) << line;
  }
  options.style.columns = 80;
  EXPECT_THAT(CheckpointTableText({record}, options), HasSubstr("verified, pinned"));
  options.style.columns = 40;
  EXPECT_THAT(CheckpointTableText({record}, options), Not(HasSubstr("DIGEST")));
}

}  // namespace
}  // namespace troupe

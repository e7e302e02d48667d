#include "worker/rank/flight_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_directory.h"

namespace troupe {
namespace {

TEST(FlightFilesTest, TheFirstAndTheNewestOfARankAreKept) {
  std::vector<std::string> names = {"rank-3.w.log", "rank-3.w.trace",
                                    "rank-4.w.epoch-1.flight.json", "rank-3.w.epoch-x.flight.json"};
  for (int epoch = 2; epoch <= 30; ++epoch) {
    names.push_back(fmt::format("rank-3.w.epoch-{}.flight.json", epoch));
  }
  const std::vector<std::string> dropped = FlightRecordsToDrop(names, "rank-3.w.log");
  EXPECT_EQ(dropped.size(), 29 - 1 - kNewestFlightRecords);
  EXPECT_EQ(dropped.front(), "rank-3.w.epoch-3.flight.json");
  EXPECT_EQ(dropped.back(), "rank-3.w.epoch-23.flight.json");
}

TEST(FlightFilesTest, ThoseThatGoAreRemoved) {
  const TemporaryDirectory folder;
  PosixFileSystem files;
  const std::string log = folder.path() + "/rank-0.worker-0.log";
  for (int epoch = 1; epoch <= 12; ++epoch) {
    std::ofstream(FlightRecordPath(log, epoch)) << "{}";
    DropFlightRecords(files, log);
  }
  const auto left = files.List(folder.path());
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(left->size(), 1 + kNewestFlightRecords);
}

}  // namespace
}  // namespace troupe

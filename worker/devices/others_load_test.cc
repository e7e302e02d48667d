#include "worker/devices/others_load.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "worker/rank/affinity.h"

namespace troupe {
namespace {

constexpr const char* kStat =
    "cpu  900 0 0 900 0 0 0 0 0 0\n"
    "cpu0 100 20 30 5000 600 7 8 35 90 0\n"
    "cpu1 1 0 0 5000 0 0 0 0 0 0\n"
    "cpu12 50 0 50 5000 0 0 0 0 0 0\n"
    "intr 1 2 3\n";

TEST(OthersLoad, ACoreIsBusyUnlessItIdlesOrWaitsForADisk) {
  EXPECT_DOUBLE_EQ(BusySeconds(kStat, {0}, 100).value(), 2.0);
  EXPECT_DOUBLE_EQ(BusySeconds(kStat, {0, 12}, 100).value(), 3.0);
  EXPECT_DOUBLE_EQ(BusySeconds(kStat, {1}, 10).value(), 0.1);
}

TEST(OthersLoad, IsNotKnownWhereTheSystemDoesNotReportACore) {
  EXPECT_FALSE(BusySeconds(kStat, {0, 2}, 100));
  EXPECT_FALSE(BusySeconds("", {0}, 100));
  EXPECT_FALSE(BusySeconds("cpu0 1 2\n", {0}, 100));
}

TEST(OthersLoad, RatesAreSpoiltByMoreThanATwentiethOfTheCores) {
  EXPECT_FALSE(SpoilsRates(0, 2));
  EXPECT_FALSE(SpoilsRates(0.09, 2));
  EXPECT_TRUE(SpoilsRates(0.11, 2));
  EXPECT_TRUE(SpoilsRates(0.06, 1));
  EXPECT_FALSE(SpoilsRates(3, 64));
}

TEST(OthersLoad, RatesOfABusyMachineAreKeptOnlyOnDemandAndWithANote) {
  EXPECT_EQ(NoteOnLoad(0.01, 2, /*even_if_busy=*/false).value(), "");
  EXPECT_EQ(NoteOnLoad(std::nullopt, 2, false).value(),
            "the system does not report whether other programs used the cores");
  const std::string note =
      "other programs used 1.50 of 2 cores during the measurement, so its rates are too low";
  EXPECT_EQ(NoteOnLoad(1.5, 2, /*even_if_busy=*/true).value(), note);
  const Status refused = NoteOnLoad(1.5, 2, /*even_if_busy=*/false).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(refused),
            note + "; nothing was written: measure on an idle machine, or add --even-if-busy");
}

TEST(OthersLoad, OthersUseNoMoreCoresThanThereAre) {
  const OthersLoad others;
  // This process keeps a core busy, which does not count as the load of others.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < end) {
  }
  const std::optional<double> cores = others.Cores();
  if (!cores) GTEST_SKIP() << "/proc/stat has no line for a core of this process";
  EXPECT_LE(*cores, 1.5 * static_cast<double>(AllowedCores().size()));
}

}  // namespace
}  // namespace troupe

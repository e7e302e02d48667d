#include "kernels/xla/pjrt/compile_options.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::kernels::xla {
namespace {

using namespace std::string_literals;

// ExecutableBuildOptionsProto up to the device's id: device_ordinal = -1, num_replicas = 1,
// num_partitions = 1 and the assignment.
const std::string kBuildOptions =
    "\x1a\x1a"
    "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    "\x20\x01"
    "\x28\x01"
    "\x4a\x09"
    "\x08\x01\x10\x01\x1a\x03\x0a\x01"s;

std::string Bytes(const Options& options, int device_id) {
  return CompileOptionBytes(options, std::span(&device_id, 1));
}

TEST(CompileOptions, NameTheDevice) {
  EXPECT_EQ(Bytes({}, 0), kBuildOptions + "\x00"s);
  EXPECT_EQ(Bytes({}, 127), kBuildOptions + "\x7f"s);
  // An id of two bytes makes four messages longer.
  EXPECT_EQ(Bytes({}, 300),
            "\x1a\x1b"
            "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
            "\x20\x01"
            "\x28\x01"
            "\x4a\x0a"
            "\x08\x01\x10\x01\x1a\x04\x0a\x02\xac\x02"s);
}

// num_partitions = 2, use_spmd_partitioning, an assignment of one replica of two computations, and
// use_shardy_partitioner.
TEST(CompileOptions, NameTheDevicesOfASliceInTheOrderOfItsPartitions) {
  EXPECT_EQ(CompileOptionBytes({}, std::vector<int>{3, 300}),
            "\x1a\x25"
            "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
            "\x20\x01"
            "\x28\x02"
            "\x30\x01"
            "\x4a\x0f"
            "\x08\x01\x10\x02"
            "\x1a\x03\x0a\x01\x03"
            "\x1a\x04\x0a\x02\xac\x02"
            "\x98\x01\x01"s);
}

TEST(CompileOptions, WriteEachTypeIntoItsField) {
  const Options options = {
      {"flag", true}, {"level", int64_t{-2}}, {"rate", 1.5}, {"set", false}, {"word", "on"s}};
  EXPECT_EQ(Bytes(options, 0), kBuildOptions +
                                   "\x00"s
                                   "\x3a\x0a\x0a\x04"
                                   "flag\x12\x02\x10\x01"
                                   "\x3a\x14\x0a\x05"
                                   "level\x12\x0b\x18\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                                   "\x3a\x11\x0a\x04"
                                   "rate\x12\x09\x21\x00\x00\x00\x00\x00\x00\xf8\x3f"
                                   "\x3a\x09\x0a\x03"
                                   "set\x12\x02\x10\x00"
                                   "\x3a\x0c\x0a\x04"
                                   "word\x12\x04\x0a\x02on"s);
}

TEST(CompileOptions, KeepNumbersExactUnlessTheCallerAsksForSpeed) {
  EXPECT_EQ(WithExactNumbers("tpu", {}), (Options{{"xla_allow_excess_precision", false}}));
  EXPECT_EQ(WithExactNumbers("cpu", {}), (Options{{"xla_allow_excess_precision", false},
                                                  {"xla_cpu_enable_fast_math", false},
                                                  {"xla_cpu_enable_fast_min_max", false},
                                                  {"xla_cpu_use_xnnpack", false}}));
  EXPECT_EQ(WithExactNumbers("tpu", {{"xla_allow_excess_precision", true}, {"other", int64_t{1}}}),
            (Options{{"other", int64_t{1}}, {"xla_allow_excess_precision", true}}));
}

TEST(CompileOptions, AreTextsInAPlan) {
  const std::vector<std::string> texts = {"a=true", "b=false", "c=98304", "d=x=y"};
  const Options options = ParseOptionTexts(texts);
  EXPECT_EQ(options, (Options{{"a", true}, {"b", false}, {"c", "98304"s}, {"d", "x=y"s}}));
  EXPECT_EQ(OptionTexts(options), texts);
  EXPECT_EQ(OptionTexts({{"number", int64_t{3}}, {"rate", 0.5}}),
            (std::vector<std::string>{"number=3", "rate=0.5"}));
}

}  // namespace
}  // namespace troupe::kernels::xla

#include "coordinator/faults/start_limit.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(StartLimit, GrowsWithWhatIsRestoredAndCompiledAndWithWhatTheJobAllows) {
  const TimeLimits limits = MakeTimeLimits(3);
  struct Row {
    const char* what;
    StartInputs inputs;
    double seconds;
  };
  const Row table[] = {
      {"nothing", {}, 120},
      {"a little is restored", {.restored_bytes = 50e6}, 120},
      {"much is restored", {.restored_bytes = 300 * 50e6}, 60 + 300},
      {"programs are compiled", {.compiled_blocks = 16}, 60 + 16 * 120},
      {"both", {.restored_bytes = 300 * 50e6, .compiled_blocks = 2}, 60 + 300 + 240},
      {"a longer limit", {.compiled_blocks = 2, .stated_seconds = 900}, 900},
      {"a shorter one", {.compiled_blocks = 2, .stated_seconds = 90}, 300},
      {"a day at the most", {.compiled_blocks = 1000}, 86400},
  };
  for (const Row& row : table)
    EXPECT_DOUBLE_EQ(ToSeconds(StartLimit(row.inputs, limits)), row.seconds) << row.what;
}

TEST(StartLimit, OnlyDevicesOfXlaCompileTheBlocksOfAStage) {
  v1::Plan plan;
  for (const int blocks : {3, 4, 2, 2}) {
    v1::ChunkPlan* const chunk = plan.add_chunks();
    chunk->set_pipe_rank((plan.chunks_size() - 1) % 2);
    chunk->set_block_count(blocks);
  }
  v1::JobSpec spec;
  for (const auto& [devices, blocks] :
       {std::pair("xla", 6), std::pair("cpu", 0), std::pair("cuda", 0)}) {
    spec.set_devices(devices);
    EXPECT_EQ(CompiledBlocks(spec, plan), blocks) << devices;
  }
}

}  // namespace
}  // namespace troupe

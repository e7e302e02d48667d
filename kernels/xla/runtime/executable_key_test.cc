#include "kernels/xla/runtime/executable_key.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

namespace troupe::kernels::xla {
namespace {

constexpr ExecutableFacts kFacts = {.module = "module {}",
                                    .option_bytes = "options",
                                    .plugin_digest = "digest",
                                    .platform_version = "1.0",
                                    .device_kind = "cpu",
                                    .topology = "avx512",
                                    .threads = 2,
                                    .environment = "XLA_FLAGS=a\n"};

TEST(ExecutableKey, IsTheSameForTheSameFacts) {
  EXPECT_EQ(ExecutableKey(kFacts), ExecutableKey(kFacts));
  EXPECT_EQ(ExecutableKey(kFacts).size(), 64u);
}

TEST(ExecutableKey, DiffersIfOneFactDoes) {
  std::set<std::string> keys = {ExecutableKey(kFacts)};
  const auto add = [&](auto member, auto value) {
    ExecutableFacts facts = kFacts;
    facts.*member = value;
    EXPECT_TRUE(keys.insert(ExecutableKey(facts)).second) << value;
  };
  add(&ExecutableFacts::module, "module { }");
  add(&ExecutableFacts::option_bytes, "option");
  add(&ExecutableFacts::plugin_digest, "another");
  add(&ExecutableFacts::platform_version, "1.1");
  add(&ExecutableFacts::device_kind, "TPU v4");
  add(&ExecutableFacts::topology, "avx2");
  add(&ExecutableFacts::threads, 1);
  add(&ExecutableFacts::environment, "");
}

TEST(ExecutableKey, DiffersIfBytesMoveFromOneFactToTheNext) {
  ExecutableFacts facts = kFacts;
  facts.module = "module {}o";
  facts.option_bytes = "ptions";
  EXPECT_NE(ExecutableKey(facts), ExecutableKey(kFacts));
}

TEST(ExecutableKey, HasTheSettingsThatThePluginReadsFromTheEnvironment) {
  for (const char* const name : {"XLA_FLAGS", "LIBTPU_INIT_ARGS"}) {
    const char* const set = std::getenv(name);
    const std::string before = set == nullptr ? "" : set;
    setenv(name, "--of_the_test", 1);
    EXPECT_NE(CompilerEnvironment().find(std::string(name) + "=--of_the_test\n"),
              std::string::npos);
    if (set == nullptr) {
      unsetenv(name);
    } else {
      setenv(name, before.c_str(), 1);
    }
  }
}

}  // namespace
}  // namespace troupe::kernels::xla

// The compiled programs of tests on XLA's CPU plugin.
#ifndef TROUPE_TESTS_LAYOUTS_XLA_PROGRAMS_H_
#define TROUPE_TESTS_LAYOUTS_XLA_PROGRAMS_H_

#include <gtest/gtest.h>

#include "base/status.h"
#include "kernels/xla/runtime/program_cache.h"

namespace troupe {

// Returns the process's programs, which its only client of the plugin compiles for short
// compilation, not for speed. Never destroyed at exit: the plugin's own statics end before those of
// this program. NOT_FOUND if there is no plugin.
StatusOr<kernels::xla::ProgramCache*> XlaPrograms();

// Frees the programs if they have many memory maps, of which Linux gives a process 65,530.
// REQUIRES: no pointer that XlaPrograms returned is in use.
void FreeManyXlaPrograms();

// A test that needs the plugin.
template <typename Test = testing::Test>
class WithXla : public Test {
 protected:
  void SetUp() override {
    if (const auto programs = XlaPrograms(); !programs.ok()) GTEST_SKIP() << programs.status();
    FreeManyXlaPrograms();
  }
};

}  // namespace troupe

#endif  // TROUPE_TESTS_LAYOUTS_XLA_PROGRAMS_H_

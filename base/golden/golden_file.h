// Golden files: texts that tests compare with what the code prints.
#ifndef TROUPE_BASE_GOLDEN_GOLDEN_FILE_H_
#define TROUPE_BASE_GOLDEN_GOLDEN_FILE_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace troupe {

// Expects that the file at `path`, relative to the folder of the project, is `text`. With
// TROUPE_UPDATE_GOLDEN set, writes it instead and reports the test as skipped.
inline void ExpectGolden(const std::string& path, const std::string& text) {
  if (std::getenv("TROUPE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    GTEST_SKIP() << "wrote " << path;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file.is_open()) << path;
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

}  // namespace troupe

#endif  // TROUPE_BASE_GOLDEN_GOLDEN_FILE_H_

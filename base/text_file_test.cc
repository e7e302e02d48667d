#include "base/text_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_directory.h"

namespace troupe {
namespace {

TEST(TextFileTest, IsReadWhole) {
  const TemporaryDirectory folder;
  for (const size_t bytes : {0u, 1u, 4096u, 10000u}) {
    const std::string path = folder.path() + "/file", text(bytes, '\0');
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(*ReadTextFile(path), text);
  }
  EXPECT_NE(ReadTextFile("/proc/self/status")->find("Pid:"), std::string::npos);
}

TEST(TextFileTest, WhatCannotBeReadIsAnError) {
  const TemporaryDirectory folder;
  EXPECT_EQ(ReadTextFile(folder.path() + "/absent").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadTextFile(folder.path()).status().code(), StatusCode::kUnavailable);
  // Nothing is mapped at address 0.
  EXPECT_EQ(ReadTextFile("/proc/self/mem").status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace troupe

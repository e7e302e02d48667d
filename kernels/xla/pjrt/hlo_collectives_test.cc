#include "kernels/xla/pjrt/hlo_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace troupe::kernels::xla {
namespace {

using testing::Pair;
using testing::UnorderedElementsAre;

// A field of bytes of at most 127 bytes.
std::string Field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

std::string Instruction(const std::string& opcode) {
  return Field(2, Field(1, "%name") + Field(2, opcode) + std::string("\x98\x01\x07", 3));
}

TEST(HloCollectives, AreCountedByKindInAllComputations) {
  const std::string module =
      Field(1, "module") + Field(3, Field(1, "body") + Instruction("all-reduce")) +
      Field(3, Instruction("all-gather-start") + Instruction("all-gather-done") +
                   Instruction("dot") + Instruction("all-reduce"));
  const auto counts = CountCollectives(module);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_THAT(*counts, UnorderedElementsAre(Pair("all-reduce", 2), Pair("all-gather", 1)));
}

TEST(HloCollectives, AreOfTheModuleInAModuleWithConfig) {
  const std::string module = Field(3, Instruction("all-reduce")), whole = Field(2, "config");
  const std::string with_config = whole + Field(1, module);
  const auto found = ModuleOf(with_config);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, module);
  EXPECT_FALSE(ModuleOf(whole).ok());
}

TEST(HloCollectives, OfBytesThatAreNoMessageAreRefused) {
  const std::string module = Field(3, Instruction("all-reduce"));
  for (const size_t size : {size_t{1}, size_t{4}, module.size() - 1})
    EXPECT_FALSE(CountCollectives(module.substr(0, size)).ok()) << size;
  // An instruction that ends within its opcode.
  EXPECT_FALSE(CountCollectives(Field(3, Field(2, "\x12\x7f"))).ok());
}

}  // namespace
}  // namespace troupe::kernels::xla

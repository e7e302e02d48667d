#include "kernels/xla/pjrt/hlo_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
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

std::map<std::string, int> CountsOf(const StatusOr<xla_messages::HloModule>& module) {
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? CountCollectives(*module) : std::map<std::string, int>();
}

TEST(HloCollectives, AreCountedByKindInAllComputations) {
  const std::string module =
      Field(1, "module") + Field(3, Field(1, "body") + Instruction("all-reduce")) +
      Field(3, Instruction("all-gather-start") + Instruction("all-gather-done") +
                   Instruction("dot") + Instruction("all-reduce"));
  EXPECT_THAT(CountsOf(ParseHloModule(module)),
              UnorderedElementsAre(Pair("all-reduce", 2), Pair("all-gather", 1)));
}

TEST(HloCollectives, AreOfTheModuleInAModuleWithConfig) {
  const std::string config = Field(2, "config");
  EXPECT_THAT(
      CountsOf(ParseHloModuleWithConfig(config + Field(1, Field(3, Instruction("all-reduce"))))),
      UnorderedElementsAre(Pair("all-reduce", 1)));
  EXPECT_FALSE(ParseHloModuleWithConfig(config).ok());
}

// Field 1 of an instruction is its name; the fields 15 and 16 stand for later ones of XLA.
TEST(HloCollectives, AreCountedWhateverFieldsXlaAddsToItsMessages) {
  const std::string number = "\x78\x07", four_bytes = "\x7d" + std::string(4, 'b'),
                    eight_bytes = "\x79" + std::string(8, 'b'),
                    later = number + four_bytes + eight_bytes + "\x82\x01\x02" + "bb";
  EXPECT_THAT(CountsOf(ParseHloModule(
                  later + Field(3, later + Field(2, later + Field(2, "all-to-all") + later)))),
              UnorderedElementsAre(Pair("all-to-all", 1)));
}

TEST(HloCollectives, OfBytesThatAreNoMessageAreRefused) {
  const std::string module = Field(3, Instruction("all-reduce"));
  for (const size_t size : {size_t{1}, size_t{4}, module.size() - 1})
    EXPECT_FALSE(ParseHloModule(module.substr(0, size)).ok()) << size;
  // An instruction that ends within its opcode.
  EXPECT_FALSE(ParseHloModule(Field(3, Field(2, "\x12\x7f"))).ok());
  EXPECT_FALSE(ParseHloModuleWithConfig(Field(1, Field(3, Field(2, "\x12\x7f")))).ok());
}

}  // namespace
}  // namespace troupe::kernels::xla

#include "kernels/xla/runtime/executable_entry.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe::kernels::xla {
namespace {

const std::string kKey(kEntryKeyBytes, 'a');
const std::string kOtherKey(kEntryKeyBytes, 'b');
const std::string kBytes("the plugin's\0bytes", 18);

std::string FaultOf(const std::string& file) {
  const auto decoded = DecodeEntry(kKey, file);
  return decoded.ok() ? "" : std::string(Message(decoded.status()));
}

TEST(ExecutableEntry, HasThePluginsBytes) {
  const std::string file = EncodeEntry(kKey, kBytes);
  EXPECT_EQ(file.size(), kEntryHeaderBytes + kBytes.size());
  EXPECT_EQ(*DecodeEntry(kKey, file), kBytes);
  const std::string empty = EncodeEntry(kKey, "");
  EXPECT_EQ(*DecodeEntry(kKey, empty), "");
}

TEST(ExecutableEntry, EachChangedByteIsNoticed) {
  const std::string file = EncodeEntry(kKey, kBytes);
  for (size_t at = 0; at < file.size(); ++at) {
    for (const int bit : {0, 7}) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      EXPECT_NE(FaultOf(changed), "") << "byte " << at;
    }
  }
}

TEST(ExecutableEntry, EachLengthButItsOwnIsRefused) {
  const std::string file = EncodeEntry(kKey, kBytes);
  for (size_t length = 0; length < file.size(); ++length)
    EXPECT_EQ(FaultOf(file.substr(0, length)), "is truncated") << length;
  EXPECT_EQ(FaultOf(file + "x"), "is damaged");
}

TEST(ExecutableEntry, TheFaultIsNamed) {
  std::string file = EncodeEntry(kKey, kBytes);
  file[8] = 2;
  EXPECT_EQ(FaultOf(file), "has another version of the format");
  EXPECT_EQ(FaultOf(EncodeEntry(kOtherKey, kBytes)), "has another key");
  EXPECT_EQ(FaultOf("ELF" + EncodeEntry(kKey, kBytes)), "is of another kind");
  file = EncodeEntry(kKey, kBytes);
  file.back() = 'z';
  EXPECT_EQ(FaultOf(file), "is damaged");
}

}  // namespace
}  // namespace troupe::kernels::xla

#include "cli/tensorboard/event_file.h"

#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "base/durable_write.h"
#include "base/file_system.h"
#include "base/temporary_directory.h"
#include "cli/tensorboard/event_record.h"

namespace troupe {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::string Hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// The bytes were computed by a separate program from the description of the format.
TEST(EventRecordTest, BytesAreThoseOfTheFormat) {
  EXPECT_EQ(Hex(EventRecord("")), "000000000000000029039807d8ea82a2");
  EXPECT_EQ(Hex(VersionRecord(1.5)),
            "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
  EXPECT_EQ(Hex(ScalarsRecord({2.0, 3}, {{"loss", 0.5}})),
            "1a00000000000000129bd82d09000000000000004010032a0d0a0b0a046c6f7373150000003fbac36b94");
}

// The parts of an event that the tests look at.
struct Event {
  double wall_time = 0;
  int64_t step = -1;
  std::string version;
  bool restarts = false;
  std::map<std::string, float> scalars;
  std::map<std::string, std::string> texts;
};

void ReadValue(const std::string& bytes, Event* event) {
  UnknownFieldSet value;
  EXPECT_TRUE(value.ParseFromString(bytes));
  std::string tag;
  for (int i = 0; i < value.field_count(); ++i) {
    const UnknownField& field = value.field(i);
    if (field.number() == 1) tag = field.length_delimited();
    if (field.number() == 2) event->scalars[tag] = std::bit_cast<float>(field.fixed32());
    if (field.number() != 8) continue;
    UnknownFieldSet tensor;
    EXPECT_TRUE(tensor.ParseFromString(field.length_delimited()));
    for (int j = 0; j < tensor.field_count(); ++j) {
      if (tensor.field(j).number() == 8) event->texts[tag] = tensor.field(j).length_delimited();
    }
  }
}

Event ReadEvent(const std::string& bytes) {
  UnknownFieldSet fields;
  EXPECT_TRUE(fields.ParseFromString(bytes));
  Event event;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.number() == 1) event.wall_time = std::bit_cast<double>(field.fixed64());
    if (field.number() == 2) event.step = static_cast<int64_t>(field.varint());
    if (field.number() == 3) event.version = field.length_delimited();
    if (field.number() == 7) event.restarts = field.length_delimited() == "\x08\x01";
    if (field.number() != 5) continue;
    UnknownFieldSet summary;
    EXPECT_TRUE(summary.ParseFromString(field.length_delimited()));
    for (int j = 0; j < summary.field_count(); ++j) {
      ReadValue(summary.field(j).length_delimited(), &event);
    }
  }
  return event;
}

class EventFileTest : public testing::Test {
 protected:
  StatusOr<EventFile> Make(int64_t first_step) {
    v1::JobSpec spec;
    spec.set_name("<script>");
    spec.mutable_training()->set_steps(7);
    return EventFile::Create(
        files_, folder_.Child("a/b"), spec,
        {.wall_time = 1700000000.5, .host = "node", .pid = 42, .first_step = first_step});
  }

  // Reads the events of the file, and expects that each record is framed as its bytes demand.
  std::vector<Event> Read(const std::string& path) {
    std::string bytes = *ReadFile(files_, path, 1 << 20, SymbolicLinks::kRefuse);
    std::vector<Event> events;
    while (bytes.size() >= 16) {
      uint64_t size = 0;
      std::memcpy(&size, bytes.data(), sizeof size);
      if (size > bytes.size() - 16) break;
      const std::string event = bytes.substr(12, size);
      EXPECT_EQ(bytes.substr(0, size + 16), EventRecord(event));
      events.push_back(ReadEvent(event));
      bytes.erase(0, size + 16);
    }
    EXPECT_EQ(bytes, "");
    return events;
  }

  PosixFileSystem files_;
  TemporaryDirectory folder_;
};

TEST_F(EventFileTest, TheFileBeginsWithItsVersionARestartAndTheSpec) {
  const auto file = Make(5);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->path(), folder_.Child("a/b/events.out.tfevents.1700000000.node.42.0"));
  const std::vector<Event> events = Read(file->path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[0].wall_time, 1700000000.5);
  EXPECT_TRUE(events[1].restarts);
  EXPECT_EQ(events[1].step, 5);
  EXPECT_EQ(events[2].step, 5);
  ASSERT_TRUE(events[2].texts.contains("job"));
  EXPECT_THAT(events[2].texts.at("job"), HasSubstr("     \"training\": {\n"));
}

TEST_F(EventFileTest, AStepHasTheFiguresThatWereMeasured) {
  auto file = Make(0);
  ASSERT_TRUE(file.ok()) << file.status();
  v1::StepEvent step;
  step.set_step(1);
  step.set_loss(std::numeric_limits<double>::quiet_NaN());
  step.set_grad_norm(2);
  step.set_learning_rate(0.25);
  step.set_tokens_per_second(1024);
  ASSERT_TRUE(file->Add(step, 1700000001.0).ok());
  step.set_step(2);
  step.set_loss(1.5);
  step.set_mfu(0.5);
  step.set_validation_loss(1.75);
  step.set_wall_time_ns(1'700'000'002'000'000'000);
  ASSERT_TRUE(file->Add(step, 1800000000.0).ok());
  const std::vector<Event> events = Read(file->path());
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[3].wall_time, 1700000001.0) << "the given time, for want of the step's own";
  EXPECT_THAT(
      events[3].scalars,
      UnorderedElementsAre(Pair("loss", IsNan()), Pair("grad_norm", 2.0F),
                           Pair("learning_rate", 0.25F), Pair("tokens_per_second", 1024.0F)));
  EXPECT_EQ(events[4].wall_time, 1700000002.0);
  EXPECT_EQ(events[4].step, 2);
  EXPECT_EQ(events[4].scalars.at("mfu"), 0.5F);
  EXPECT_EQ(events[4].scalars.at("validation_loss"), 1.75F);
}

TEST_F(EventFileTest, AStepThatIsRepeatedReplacesTheEarlierOnes) {
  auto file = Make(0);
  ASSERT_TRUE(file.ok()) << file.status();
  for (const int64_t number : {1, 2, 3, 2}) {
    v1::StepEvent step;
    step.set_step(number);
    ASSERT_TRUE(file->Add(step, 0).ok());
  }
  std::vector<std::pair<int64_t, bool>> steps;
  for (const Event& event : Read(file->path())) steps.emplace_back(event.step, event.restarts);
  EXPECT_THAT(steps, ElementsAre(Pair(-1, false), Pair(0, true), Pair(0, false), Pair(1, false),
                                 Pair(2, false), Pair(3, false), Pair(2, true), Pair(2, false)));
}

TEST_F(EventFileTest, AFolderThatCannotBeMadeIsNamed) {
  ASSERT_TRUE(WriteFileDurably(files_, folder_.Child("a"), AsBytes("a file")).ok());
  const auto file = Make(0);
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(std::string(file.status().message()), HasSubstr(folder_.Child("a")));
  const auto in_a_file = EventFile::Create(files_, folder_.Child("a"), {}, {});
  EXPECT_EQ(in_a_file.status().code(), StatusCode::kInvalidArgument) << in_a_file.status();
}

}  // namespace
}  // namespace troupe

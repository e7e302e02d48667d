#include "worker/rank/frame.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "troupe/v1/rank.pb.h"

namespace troupe {
namespace {

v1::RankCommand Command(int rank) {
  v1::RankCommand command;
  command.mutable_begin()->set_rank(rank);
  return command;
}

TEST(Frame, ComesOutWholeHoweverItsBytesArrive) {
  const std::string bytes = EncodeFrame(Command(7)) + EncodeFrame(Command(8));
  FrameDecoder decoder;
  std::vector<int> ranks;
  for (const char byte : bytes) {
    decoder.Append({&byte, 1});
    const auto frame = decoder.Next();
    ASSERT_TRUE(frame.ok());
    if (!*frame) continue;
    v1::RankCommand command;
    ASSERT_TRUE(command.ParseFromString(**frame));
    ranks.push_back(command.begin().rank());
  }
  EXPECT_EQ(ranks, (std::vector<int>{7, 8}));
}

// protobuf parses no message with a text that is not UTF-8.
TEST(Frame, ATextThatIsNotUtf8ArrivesWithReplacements) {
  v1::RankReport failed, traced, plain;
  failed.mutable_worker()->mutable_rank_failed()->set_message("open /data/caf\xe9: no such file");
  traced.mutable_worker()->mutable_rank_trace()->add_names("\xff");
  plain.mutable_worker()->mutable_rank_failed()->set_message("größe");
  FrameDecoder decoder;
  for (const v1::RankReport* const each : {&failed, &traced, &plain})
    decoder.Append(EncodeFrame(*each));
  v1::RankReport arrived;
  ASSERT_TRUE(arrived.ParseFromString(**decoder.Next()));
  EXPECT_EQ(arrived.worker().rank_failed().message(), "open /data/caf\xEF\xBF\xBD: no such file");
  ASSERT_TRUE(arrived.ParseFromString(**decoder.Next()));
  EXPECT_EQ(arrived.worker().rank_trace().names(0), "\xEF\xBF\xBD");
  ASSERT_TRUE(arrived.ParseFromString(**decoder.Next()));
  EXPECT_EQ(arrived.worker().rank_failed().message(), "größe");
  EXPECT_EQ(EncodeFrame(plain), EncodeFrame(plain, FrameTexts::kUtf8));
}

TEST(Frame, AnEmptyMessageIsAFrameToo) {
  FrameDecoder decoder;
  decoder.Append(EncodeFrame(v1::RankCommand()));
  const auto frame = decoder.Next();
  ASSERT_TRUE(frame.ok() && frame->has_value());
  EXPECT_TRUE((*frame)->empty());
}

TEST(Frame, ALengthAboveTheLimitIsRefused) {
  FrameDecoder decoder;
  decoder.Append("\xff\xff\xff\xff");
  EXPECT_EQ(decoder.Next().status().code(), StatusCode::kInvalidArgument);
}

TEST(FrameSocket, CarriesMessagesLargerThanItsBufferAndReportsTheOtherEndsDeath) {
  int descriptors[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, descriptors), 0);
  auto left = std::make_unique<FrameSocket>(descriptors[0]);
  FrameSocket right(descriptors[1]);
  v1::RankCommand large = Command(1);
  large.mutable_begin()->set_log_path(std::string(3 << 20, 'x'));
  std::thread sender([&] { EXPECT_TRUE(left->Send(large).ok()); });
  const auto frame = right.Receive(10000);
  sender.join();
  ASSERT_TRUE(frame.ok() && frame->has_value());
  EXPECT_EQ(**frame, large.SerializeAsString());

  const auto nothing = right.Receive(0);
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->has_value());
  left.reset();
  EXPECT_EQ(right.Receive(10000).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(right.Send(large).code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace troupe

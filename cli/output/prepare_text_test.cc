#include "cli/output/prepare_text.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(PrepareTextTest, TheResultHasOneLineForTheWorkAndOneForTheTokens) {
  const PrepareResult result = {.documents = 783,
                                .tokens = 11'714'827,
                                .text_bytes = 11'714'044,
                                .files = {"headers.bin", "headers.idx"},
                                .vocab_size = 257,
                                .end_of_document = 256};
  EXPECT_EQ(PrepareText(result, 0.25, {.columns = 80}),
            "783 documents, 11714827 tokens of 11.7 MB of text, 0.2 s, 46859308 tokens/s\n"
            "token ids are below 257, and 256 ends a document\n"
            "headers.bin\n"
            "headers.idx\n");
}

}  // namespace
}  // namespace troupe
